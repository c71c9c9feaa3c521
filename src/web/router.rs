//! The addresses of the web application and the layers around them.
//!
//! Layers, outermost first: request number and log span, counts for Prometheus, who is asking, who is signed in, the headers of https
//! and the other ones of security, rendering of errors, cookies of new visitors, compression, panics, limits of how often, the
//! same-site check, the body; a time limit lies on everything but event streams and exports. Below all of them is the listener,
//! with limits on connections.

mod api;

use crate::web::extractors::access::Steering;
use crate::web::extractors::account::Viewing;
use crate::web::handlers::metrics;
use crate::web::handlers::{
    access, account, answers, assets, charts, checkpoints, comparison, corpora, docs, events, export, export_page,
    guide, health, home, import_descriptions, import_episodes, invite, learned, new_run, not_found, people, progress,
    review, run, run_labels, run_trash, runs, sign_in, studies, study, study_answers, study_people, study_questions,
    study_settings, study_webhooks, teach, tokens, undo,
};
use crate::web::limits::Limits;
use crate::web::limits::standing::Quota;
use crate::web::metrics::Metrics;
use crate::web::middleware::metrics as count_requests;
use crate::web::middleware::{
    body, deprecation, errors, family_pages, log, rate_limits, security, session, visitor_cookie,
};
use crate::web::settings::{BODY_LIMIT, WORDS_LIMIT};
use crate::web::state::AppState;
use axum::Extension;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::{from_extractor_with_state, from_fn, from_fn_with_state};
use axum::routing::{get, post};
use std::sync::Arc;
use std::time::Duration;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

/// How long an ordinary request may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// Every address, without the layers.
fn routes(state: &AppState, counted: &Arc<Metrics>) -> Router<AppState> {
    let ordinary = Router::new()
        .route("/", get(home::home))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::show).layer(Extension(counted.clone())))
        .route("/static/{*path}", get(assets::asset))
        .route("/access", get(access::form).post(access::enter))
        .route("/access/leave", post(access::leave))
        .route("/docs", get(docs::index))
        .route("/docs/{*page}", get(docs::page))
        .route("/licence", get(docs::licence))
        .route("/teach/{run}", get(teach::page).post(teach::send).layer(DefaultBodyLimit::max(WORDS_LIMIT)))
        .route("/teach/{run}/guide", get(guide::page).post(guide::seen))
        .route("/teach/{run}/answers", get(answers::page))
        .route("/teach/{run}/answers/{answer}", post(answers::correct).layer(DefaultBodyLimit::max(WORDS_LIMIT)))
        .route("/teach/{run}/answers/{answer}/undo", post(undo::plain))
        .route("/teach/{run}/answers/{answer}/withdraw", post(undo::withdraw))
        .route("/runs", get(runs::page).post(runs::create))
        .route("/charts", get(charts::page))
        .route("/runs/{run}/learned", get(learned::page))
        .route("/runs/{run}", get(run::page))
        .route("/runs/{run}/resume", post(runs::resume))
        .route("/runs/{run}/go-on", post(runs::resume))
        .route("/export", get(export_page::page))
        .route("/progress", get(progress::show))
        .route("/import", get(import_episodes::page))
        .route("/corpora/{name}/delete", post(corpora::delete))
        .merge(kept_run_routes())
        .merge(review_routes())
        .merge(account_routes())
        .merge(study_routes())
        .merge(token_routes())
        .merge(family_routes(state));
    let long = Router::new()
        .route("/corpora", get(corpora::page).post(corpora::upload))
        .route("/runs/trash/empty", get(run_trash::confirm_empty).post(run_trash::empty))
        .route("/import/episodes", post(import_episodes::bring_in))
        .route("/import/descriptions", get(import_descriptions::page).post(import_descriptions::check))
        .route("/import/descriptions/bring", post(import_descriptions::bring))
        .route("/runs/{run}/checkpoints/{name}", get(checkpoints::download))
        .route("/export/{file}", get(export::file));
    timed(ordinary).merge(long).merge(older_routes()).merge(api::routes(state))
}

/// Addresses of before, whose places others under `/api/v1` have taken.
fn older_routes() -> Router<AppState> {
    Router::new()
        .route("/events", get(events::shared))
        .route("/runs/{run}/events", get(events::stream))
        .route("/runs/{run}/export.jsonl", get(export::jsonl))
        .route("/runs/{run}/export.csv", get(export::csv))
        .route("/runs/{run}/export.schema.json", get(export::schema))
        .route("/export/count", get(export::count))
        .route_layer(from_fn(deprecation::mark))
}

/// Addresses whose requests have a limit of time.
fn timed(routes: Router<AppState>) -> Router<AppState> {
    routes.layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, REQUEST_LIMIT))
}

/// The addresses at which owners make and revoke the tokens of programs.
fn token_routes() -> Router<AppState> {
    Router::new()
        .route("/tokens", get(tokens::show).post(tokens::create))
        .route("/tokens/{token}/revoke", post(tokens::revoke))
}

/// The addresses by which runs are kept in order, and used after their end.
fn kept_run_routes() -> Router<AppState> {
    Router::new()
        .route("/runs/new", get(new_run::page).post(new_run::create))
        .route("/runs/new/check", post(new_run::check))
        .route("/runs/new/file", post(new_run::read_file))
        .route("/runs/trash", get(run_trash::page))
        .route("/runs/{run}/settings.toml", get(new_run::download))
        .route("/runs/{run}/label", post(run_labels::form))
        .route("/runs/{run}/delete", get(run_trash::confirm).post(run_trash::delete_form))
        .route("/runs/{run}/restore", post(run_trash::restore_form))
        .route("/runs/{run}/episodes", post(checkpoints::extend_form))
}

/// The addresses of those who review what teachers said.
fn review_routes() -> Router<AppState> {
    Router::new()
        .route("/review", get(review::list))
        .route("/studies/{study}/review", get(review::page))
        .route("/studies/{study}/review/{answer}", post(review::decide))
        .route("/studies/{study}/adjudicate/{execution}", post(review::adjudicate))
        .route("/studies/{study}/agreement", post(review::work_out_agreement))
}

/// The addresses of people who sign in.
fn account_routes() -> Router<AppState> {
    Router::new()
        .route("/sign-in", get(sign_in::form).post(sign_in::enter))
        .route("/sign-out", post(sign_in::leave))
        .route("/account", get(account::show))
        .route("/account/password", post(account::change_password))
        .route("/account/sessions/end-others", post(account::end_others))
        .route("/account/sessions/{session}/end", post(account::end_session))
        .route("/people", get(people::show))
        .route("/people/invites", post(people::invite))
        .route("/people/invites/{invite}/revoke", post(people::revoke))
        .route("/people/{account}/role", post(people::set_role))
        .route("/people/{account}/disable", post(people::disable))
        .route("/people/{account}/enable", post(people::enable))
        .route("/welcome", get(invite::cut))
        .route("/welcome/{token}", get(invite::open))
        .route("/invite", get(invite::cut).post(invite::accept))
        .route("/invite/{token}", get(invite::open))
}

/// The addresses of studies, those of their teachers first.
fn study_routes() -> Router<AppState> {
    Router::new()
        .route("/study/{study}", get(study::page))
        .route("/study/{study}/join", post(study::join))
        .route("/study/{study}/guidelines", get(study::guidelines_again))
        .route("/study/{study}/begin", post(study::begin))
        .route("/study/{study}/qualify", post(study_questions::qualify_answer))
        .route("/study/{study}/check", get(study_questions::check).post(study_questions::check_answer))
        .route("/study/{study}/leave", post(study::leave))
        .route("/study/{study}/back", post(study::back))
        .route("/study/{study}/answers", get(study_answers::page))
        .route("/study/{study}/answers/{answer}/withdraw", post(study_answers::withdraw))
        .route("/studies", get(studies::list).post(studies::create))
        .route("/studies/new", get(study_settings::new))
        .route("/studies/settings", post(study_settings::read))
        .route("/studies/preview", post(studies::preview))
        .route("/studies/{study}", get(studies::page))
        .route("/studies/{study}/edit", get(studies::edit).post(studies::change))
        .route("/studies/{study}/state", post(studies::set_state))
        .route("/studies/{study}/settings.toml", get(study_settings::download))
        .route("/studies/{study}/webhooks/test", post(study_webhooks::test))
        .route("/studies/{study}/webhooks/secret", post(study_webhooks::secret))
        .route("/studies/{study}/webhooks/{message}/retry", post(study_webhooks::retry))
        .route("/studies/{study}/approvals.csv", get(study_people::approvals))
        .route("/studies/{study}/comparison", get(comparison::page))
        .route("/studies/{study}/comparison.csv", get(comparison::csv))
        .route("/studies/{study}/comparison-curves.csv", get(comparison::curves_csv))
        .route("/studies/{study}/invitations", post(study_people::invite))
        .route("/studies/{study}/invitations/{key}/revoke", post(study_people::revoke))
        .route("/studies/{study}/participants/{number}", get(study_people::participant))
        .route("/studies/{study}/participants/{number}/judge", post(study_people::judge))
        .route("/studies/{study}/participants/{number}/approval", post(study_people::approve))
        .route("/studies/{study}/participants/{number}/erase", post(study_people::erase))
}

/// The addresses that the families bring, each family's below its own name.
fn family_routes(state: &AppState) -> Router<AppState> {
    let mut routes = Router::new();
    for family in state.families {
        let Some(pages) = family.pages() else { continue };
        let shared = family_pages::FamilyRoutes { state: state.clone(), family: *family };
        let context = shared.context();
        let mut own = pages.viewers;
        if own.has_routes() {
            own = own.route_layer(from_extractor_with_state::<Viewing, _>(state.clone()));
        }
        if pages.researchers.has_routes() {
            own = own.merge(pages.researchers.route_layer(from_extractor_with_state::<Steering, _>(state.clone())));
        }
        let own = own.with_state(context);
        let layer = from_fn_with_state(shared, family_pages::serve);
        routes = routes.merge(Router::new().nest(&format!("/{}", family.name()), own).route_layer(layer));
    }
    routes
}

/// The buckets of a server.
pub(crate) fn limits_of(state: &AppState) -> Arc<Limits> {
    let work = state.families.iter().filter_map(|family| {
        let limit = family.pages()?.work_limit?;
        Some((family.name(), Quota { name: limit.name, burst: limit.burst, each: limit.each }))
    });
    Limits::new(&state.settings, work)
}

/// The whole application as a router.
pub fn router(state: AppState) -> Router {
    let limits = limits_of(&state);
    router_within(state, limits)
}

pub(crate) fn router_within(state: AppState, limits: Arc<Limits>) -> Router {
    let base = state.settings.base_path.clone();
    let counted = Arc::new(Metrics::default());
    let routes = match base.as_str() {
        "" => routes(&state, &counted),
        // Both forms are served: some proxies pass the prefix on, some strip it.
        base => Router::new().nest(base, routes(&state, &counted)).merge(routes(&state, &counted)),
    };
    routes
        .fallback(not_found::fallback)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(from_fn_with_state(state.clone(), body::read_whole))
        .layer(from_fn_with_state(state.clone(), security::same_site))
        .layer(from_fn_with_state((state.clone(), limits.clone()), rate_limits::count))
        .layer(CatchPanicLayer::custom(errors::panicked))
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(state.clone(), visitor_cookie::keep_cookie))
        .layer(from_fn_with_state(state.clone(), errors::render_errors))
        .layer(from_fn(security::security_headers))
        .layer(from_fn_with_state(state.clone(), security::strict_transport))
        .layer(from_fn_with_state(state.clone(), session::recognise))
        .layer(from_fn_with_state((state.clone(), limits), rate_limits::introduce))
        .layer(from_fn_with_state((state.clone(), counted), count_requests::count))
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(TraceLayer::new_for_http().make_span_with(log::span))
        .layer(SetRequestIdLayer::x_request_id(MakeRequestUuid))
        .with_state(state)
}
