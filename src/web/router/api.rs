//! The addresses of programs, `/api/v1`, with the document that describes them; and the older ones under `/api`, which are the same
//! handlers except where a list is read page by page.

use crate::store::Scope;
use crate::web::error::Problem;
use crate::web::extractors::program::{self, V1};
use crate::web::handlers::{
    checkpoints, comparison, comprehension_api, describing_api, events, export, export_manifest, import_api,
    launch_api, learned, lists_api, openapi, outside_api, run_api, run_labels, run_trash, studies_api, teach_api, undo,
};
use crate::web::middleware::deprecation;
use crate::web::middleware::idempotency::{self, UnderWay};
use crate::web::router::timed;
use crate::web::state::AppState;
use axum::Router;
use axum::http::Method;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, Required, ResponseBuilder};
use utoipa::openapi::{ObjectBuilder, Type};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Name of the scheme of tokens in the document.
const TOKEN: &str = "token";

/// The addresses that have the same handlers under `/api/v1` and `/api`.
fn shared() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(launch_api::create))
        .routes(routes!(run_api::status, run_labels::patch, run_trash::delete))
        .routes(routes!(run_trash::losses))
        .routes(routes!(run_trash::restore))
        .routes(routes!(checkpoints::evaluations, checkpoints::evaluate))
        .routes(routes!(checkpoints::continue_from))
        .routes(routes!(checkpoints::extend))
        .routes(routes!(run_api::checkpoint_now))
        .routes(routes!(run_api::pause))
        .routes(routes!(launch_api::resume))
        .routes(routes!(run_api::stop))
        .routes(routes!(run_api::teacher))
        .routes(routes!(run_api::try_agent))
        .routes(routes!(comprehension_api::readings))
        .routes(routes!(comprehension_api::own))
        .routes(routes!(comprehension_api::review))
        .routes(routes!(teach_api::lease))
        .routes(routes!(teach_api::renew))
        .routes(routes!(teach_api::release))
        .routes(routes!(describing_api::save_draft, describing_api::save_draft_of_closing_page))
        .routes(routes!(describing_api::reveal))
        .routes(routes!(describing_api::preview))
        .routes(routes!(teach_api::answer))
        .routes(routes!(teach_api::correct))
        .routes(routes!(undo::api))
        .routes(routes!(studies_api::study, studies_api::change))
        .routes(routes!(comparison::api))
}

/// The addresses under `/api/v1` alone.
fn current() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(openapi::show))
        .routes(routes!(lists_api::presets))
        .routes(routes!(lists_api::runs))
        .routes(routes!(lists_api::points))
        .routes(routes!(lists_api::episodes))
        .routes(routes!(lists_api::checkpoints))
        .routes(routes!(lists_api::descriptions))
        .routes(routes!(lists_api::own_answers))
        .routes(routes!(lists_api::own_drafts))
        .routes(routes!(lists_api::studies))
        .routes(routes!(lists_api::participants))
        .routes(routes!(learned::api))
        .routes(routes!(run_trash::list))
        .routes(routes!(run_trash::remove))
        .routes(routes!(export::count))
        .routes(routes!(outside_api::create))
        .routes(routes!(outside_api::post_executions))
        .routes(routes!(outside_api::post_update))
}

/// The older forms of addresses, under `/api` alone.
fn older() -> Router<AppState> {
    Router::new()
        .route("/presets", get(launch_api::presets))
        .route("/runs", get(run_api::list))
        .route("/runs/{run}/go-on", post(launch_api::resume_ended))
        .route("/runs/{run}/points", get(run_api::points))
        .route("/runs/{run}/episodes", get(run_api::episodes))
        .route("/runs/{run}/checkpoints", get(checkpoints::list))
        .route("/runs/{run}/drafts", get(describing_api::drafts))
        .route("/runs/{run}/answers", get(teach_api::own))
        .route("/studies", get(studies_api::list))
        .route("/studies/{study}/participants", get(studies_api::participants))
}

/// Downloads and streams under `/api/v1` alone, which last.
fn current_streams() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(events::shared))
        .routes(routes!(events::stream))
        .routes(routes!(outside_api::events))
        .routes(routes!(checkpoints::download))
        .routes(routes!(export::file))
        .routes(routes!(export_manifest::manifest))
}

/// Files that programs send under `/api/v1` alone, which take a while to come and to be read.
fn uploads() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(import_api::descriptions))
}

/// Streams, which last, and which are under `/api`, too.
fn streams() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(comprehension_api::events))
}

/// Adds to an operation the parts that all have: its scope, its key, and its errors.
fn complete(method: &Method, path: &str, operation: &mut Operation) {
    let scopes: &[Scope] = if path == format!("{V1}/openapi.json") { &[] } else { program::needed(method, path) };
    let requirement = |scope: &Scope| SecurityRequirement::new(TOKEN, [scope.as_str()]);
    operation.security = Some(scopes.iter().map(requirement).collect());
    if *method == Method::POST {
        let key = ParameterBuilder::new()
            .name("Idempotency-Key")
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some("A random key: the request is carried out once, however often it is sent within a day."))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String).max_length(Some(255)).build()))
            .build();
        operation.parameters.get_or_insert_default().push(key.into());
    }
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
    let problem =
        ResponseBuilder::new().description("What was refused, and why").content("application/problem+json", problem);
    operation.responses.responses.insert("default".to_owned(), problem.build().into());
}

/// The document with the parts that all operations share.
fn completed(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        let operations = [
            (Method::GET, &mut item.get),
            (Method::POST, &mut item.post),
            (Method::PUT, &mut item.put),
            (Method::PATCH, &mut item.patch),
            (Method::DELETE, &mut item.delete),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                complete(&method, path, operation);
            }
        }
    }
    let components = document.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
        "The token of a program. On the server's own machine it is not needed where nothing else is configured.",
    ));
    components.add_security_scheme(TOKEN, SecurityScheme::Http(scheme.build()));
    document
}

fn document() -> OpenApi {
    let info = InfoBuilder::new().title("Iliad").version("1").description(Some(
        "People teach an agent by describing what it just did. Through these addresses another program can be the agent, the \
         teacher or the analyst.",
    ));
    OpenApiBuilder::new().info(info.build()).build()
}

/// All addresses of programs.
pub(super) fn routes(state: &AppState) -> Router<AppState> {
    let under_way = UnderWay::default();
    let lasting = streams().merge(current_streams());
    let (quick, quick_document) =
        OpenApiRouter::with_openapi(document()).nest(V1, shared().merge(current())).split_for_parts();
    let (lasting, lasting_document) = OpenApiRouter::new().nest(V1, lasting).split_for_parts();
    let (uploads, uploads_document) = OpenApiRouter::new().nest(V1, uploads()).split_for_parts();
    openapi::remember(|| {
        let mut document = quick_document;
        document.merge(lasting_document);
        document.merge(uploads_document);
        // As JSON in lines: a change shows as such in the checked-in file.
        completed(document).to_pretty_json().unwrap_or_default() + "\n"
    });
    let once = from_fn_with_state((state.clone(), under_way), idempotency::once);
    let (quick, uploads) = (quick.route_layer(once.clone()), uploads.route_layer(once));
    let aliases = Router::from(shared()).merge(older());
    let lasting_aliases = Router::new().nest("/api", streams().into()).layer(from_fn(deprecation::mark));
    let aliases = Router::new().nest("/api", aliases).layer(from_fn(deprecation::mark));
    timed(quick.merge(aliases)).merge(lasting).merge(uploads).merge(lasting_aliases)
}
