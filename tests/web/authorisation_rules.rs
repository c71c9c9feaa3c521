//! The rules: who may ask for which address.

use crate::authorisation_fixture::Who;
use iliad::store::{Role, Scope};

/// Who may ask for an address.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Everybody.
    Everyone,
    /// Everybody may try; what is wrong is refused with the form.
    Entering,
    /// Everybody; the page holds an execution for a visitor who comes back, for three minutes at most.
    Holding,
    /// Browsers whose cookie comes back, and programs that teach.
    Visitors,
    /// As visitors, each for what is their own.
    Own,
    /// Visitors who have described an execution of the run, and those who steer.
    Trying,
    /// Visitors, and those who review.
    Viewers,
    /// Owners, researchers, the access token, and the tokens of programs with one of the scopes or with `admin`.
    Steering(&'static [Scope]),
    /// As steering, and reviewers.
    Reviewing,
    /// Owners, the access token, and the tokens of programs with `admin`: what is removed is gone for good.
    Removing,
    /// Owners.
    Owners,
    /// Whoever is signed in.
    SignedIn,
    /// Whoever is signed in, for what is their own.
    OwnAccount,
}

use Rule::{
    Entering, Everyone, Holding, Own, OwnAccount, Owners, Removing, Reviewing, SignedIn, Steering, Trying, Viewers,
    Visitors,
};

/// Pages of researchers: no scope but `admin` opens them.
const PAGES: Rule = Steering(&[Scope::Admin]);
const READ: Rule = Steering(&[Scope::Read]);
const READ_OR_AGENT: Rule = Steering(&[Scope::Read, Scope::Agent]);
const STEER: Rule = Steering(&[Scope::Steer]);
const EXPORT: Rule = Steering(&[Scope::Export]);
const EXPORT_OR_AGENT: Rule = Steering(&[Scope::Export, Scope::Agent]);
const AGENT: Rule = Steering(&[Scope::Agent]);
const ADMIN: Rule = Steering(&[Scope::Admin]);

/// Methods, address, rule.
pub const RULES: &[(&str, &str, Rule)] = &[
    ("GET", "/", Everyone),
    ("GET", "/healthz", Everyone),
    ("GET", "/readyz", Everyone),
    ("GET", "/metrics", READ),
    ("GET", "/static/{*path}", Everyone),
    ("GET", "/docs", Everyone),
    ("GET", "/docs/{*page}", Everyone),
    ("GET", "/licence", Everyone),
    // Signing in.
    ("GET", "/access", Everyone),
    ("POST", "/access", Entering),
    ("POST", "/access/leave", Everyone),
    ("GET", "/sign-in", Everyone),
    ("POST", "/sign-in", Entering),
    ("POST", "/sign-out", Everyone),
    ("GET", "/welcome", Everyone),
    ("GET", "/welcome/{token}", Everyone),
    ("GET POST", "/invite", Everyone),
    ("GET", "/invite/{token}", Everyone),
    // Accounts and tokens.
    ("GET", "/account", SignedIn),
    ("POST", "/account/password", SignedIn),
    ("POST", "/account/sessions/end-others", SignedIn),
    ("POST", "/account/sessions/{session}/end", OwnAccount),
    ("GET", "/people", Owners),
    ("POST", "/people/invites", Owners),
    ("POST", "/people/invites/{invite}/revoke", Owners),
    ("POST", "/people/{account}/role", Owners),
    ("POST", "/people/{account}/disable", Owners),
    ("POST", "/people/{account}/enable", Owners),
    ("GET POST", "/tokens", Owners),
    ("POST", "/tokens/{token}/revoke", Owners),
    // Teaching.
    ("GET", "/teach/{run}", Holding),
    ("POST", "/teach/{run}", Own),
    ("GET", "/teach/{run}/guide", Everyone),
    ("POST", "/teach/{run}/guide", Visitors),
    ("GET", "/teach/{run}/answers", Everyone),
    ("POST", "/teach/{run}/answers/{answer}", Own),
    ("POST", "/teach/{run}/answers/{answer}/undo", Own),
    ("POST", "/teach/{run}/answers/{answer}/withdraw", Own),
    // Teachers of a study.
    ("GET", "/study/{study}", Everyone),
    ("POST", "/study/{study}/join", Visitors),
    ("GET", "/study/{study}/guidelines", Everyone),
    ("POST", "/study/{study}/begin", Visitors),
    ("POST", "/study/{study}/qualify", Visitors),
    ("GET", "/study/{study}/check", Everyone),
    ("POST", "/study/{study}/check", Visitors),
    ("POST", "/study/{study}/leave", Visitors),
    ("POST", "/study/{study}/back", Visitors),
    ("GET", "/study/{study}/answers", Everyone),
    ("POST", "/study/{study}/answers/{answer}/withdraw", Own),
    // Houses of NAV, by the rule of the pages that show them.
    ("GET", "/nav/houses/{name}/house.json", Viewers),
    ("GET", "/nav/panoramas/{house}", Viewers),
    ("GET", "/nav/panoramas/{house}/{viewpoint}", Viewers),
    ("GET", "/nav/houses/{name}", PAGES),
    // Runs.
    ("GET POST", "/runs", PAGES),
    ("GET", "/charts", PAGES),
    ("GET POST", "/runs/new", PAGES),
    ("POST", "/runs/new/check", PAGES),
    ("POST", "/runs/new/file", PAGES),
    ("GET", "/runs/trash", PAGES),
    ("GET POST", "/runs/trash/empty", Removing),
    ("GET", "/runs/{run}", PAGES),
    ("GET", "/runs/{run}/learned", PAGES),
    ("POST", "/runs/{run}/resume", PAGES),
    ("POST", "/runs/{run}/go-on", PAGES),
    ("GET", "/runs/{run}/settings.toml", PAGES),
    ("POST", "/runs/{run}/label", PAGES),
    ("GET POST", "/runs/{run}/delete", PAGES),
    ("POST", "/runs/{run}/restore", PAGES),
    ("POST", "/runs/{run}/episodes", PAGES),
    ("GET", "/events", READ),
    ("GET", "/runs/{run}/events", READ),
    ("GET", "/runs/{run}/checkpoints/{name}", PAGES),
    ("GET", "/export", PAGES),
    ("GET", "/runs/{run}/export.jsonl", EXPORT),
    ("GET", "/runs/{run}/export.csv", EXPORT),
    ("GET", "/runs/{run}/export.schema.json", EXPORT),
    ("GET", "/export/count", EXPORT),
    ("GET", "/progress", PAGES),
    ("GET", "/export/{file}", EXPORT),
    // Data that researchers bring in.
    ("GET", "/import", PAGES),
    ("POST", "/import/episodes", PAGES),
    ("GET POST", "/import/descriptions", PAGES),
    ("POST", "/import/descriptions/bring", PAGES),
    ("GET POST", "/corpora", PAGES),
    ("POST", "/corpora/{name}/delete", PAGES),
    // Reviewing.
    ("GET", "/review", Reviewing),
    ("GET", "/studies/{study}/review", Reviewing),
    ("POST", "/studies/{study}/review/{answer}", Reviewing),
    ("POST", "/studies/{study}/adjudicate/{execution}", Reviewing),
    ("POST", "/studies/{study}/agreement", Reviewing),
    // Studies.
    ("GET POST", "/studies", PAGES),
    ("GET", "/studies/new", PAGES),
    ("POST", "/studies/settings", PAGES),
    ("POST", "/studies/preview", PAGES),
    ("GET", "/studies/{study}", PAGES),
    ("GET POST", "/studies/{study}/edit", PAGES),
    ("POST", "/studies/{study}/state", PAGES),
    ("GET", "/studies/{study}/settings.toml", PAGES),
    ("POST", "/studies/{study}/webhooks/test", PAGES),
    ("POST", "/studies/{study}/webhooks/secret", PAGES),
    ("POST", "/studies/{study}/webhooks/{message}/retry", PAGES),
    ("GET", "/studies/{study}/approvals.csv", PAGES),
    ("GET", "/studies/{study}/comparison", PAGES),
    ("GET", "/studies/{study}/comparison.csv", PAGES),
    ("GET", "/studies/{study}/comparison-curves.csv", PAGES),
    ("POST", "/studies/{study}/invitations", PAGES),
    ("POST", "/studies/{study}/invitations/{key}/revoke", PAGES),
    ("GET", "/studies/{study}/participants/{number}", PAGES),
    ("POST", "/studies/{study}/participants/{number}/judge", PAGES),
    ("POST", "/studies/{study}/participants/{number}/approval", PAGES),
    ("POST", "/studies/{study}/participants/{number}/erase", PAGES),
    // Programs. An address under /api has the rule of the one under /api/v1 (see `rule_of`), and those that are there alone follow.
    ("GET", "/api/v1/openapi.json", Everyone),
    ("GET", "/api/v1/presets", READ),
    ("GET", "/api/v1/events", READ),
    ("GET", "/api/v1/export/count", EXPORT),
    ("POST", "/api/v1/import/descriptions", STEER),
    ("GET", "/api/v1/export/{file}", EXPORT),
    ("GET", "/api/v1/export/{file}/manifest", EXPORT),
    ("GET", "/api/v1/trash", READ),
    ("DELETE", "/api/v1/trash/{run}", Removing),
    ("POST", "/api/v1/outside-runs", STEER),
    ("GET", "/api/v1/runs", READ),
    ("POST", "/api/v1/runs", STEER),
    ("GET", "/api/v1/runs/{run}", READ_OR_AGENT),
    ("DELETE PATCH", "/api/v1/runs/{run}", STEER),
    ("GET", "/api/v1/runs/{run}/answers", Visitors),
    ("POST", "/api/v1/runs/{run}/answers", Own),
    ("POST", "/api/v1/runs/{run}/answers/{answer}/correct", Own),
    ("POST", "/api/v1/runs/{run}/answers/{answer}/undo", Own),
    ("GET", "/api/v1/runs/{run}/checkpoints", READ),
    ("GET", "/api/v1/runs/{run}/checkpoints/{name}", READ),
    ("POST", "/api/v1/runs/{run}/checkpoints", STEER),
    ("GET", "/api/v1/runs/{run}/comprehension", Visitors),
    ("GET", "/api/v1/runs/{run}/comprehension/events", Visitors),
    ("POST", "/api/v1/runs/{run}/continue", STEER),
    ("GET", "/api/v1/runs/{run}/descriptions", EXPORT_OR_AGENT),
    ("GET", "/api/v1/runs/{run}/descriptions/events", EXPORT_OR_AGENT),
    ("GET", "/api/v1/runs/{run}/drafts", Visitors),
    ("GET", "/api/v1/runs/{run}/episodes", READ),
    ("POST", "/api/v1/runs/{run}/episodes", STEER),
    ("GET", "/api/v1/runs/{run}/evaluations", READ),
    ("POST", "/api/v1/runs/{run}/evaluations", STEER),
    ("GET", "/api/v1/runs/{run}/events", READ_OR_AGENT),
    ("POST", "/api/v1/runs/{run}/executions", AGENT),
    ("PUT POST", "/api/v1/runs/{run}/executions/{execution}/draft", Own),
    ("POST", "/api/v1/runs/{run}/executions/{execution}/preview", Own),
    ("POST", "/api/v1/runs/{run}/executions/{execution}/release", Own),
    ("POST", "/api/v1/runs/{run}/executions/{execution}/renew", Own),
    ("POST", "/api/v1/runs/{run}/executions/{execution}/reveal", Own),
    ("POST", "/api/v1/runs/{run}/lease", Visitors),
    ("GET", "/api/v1/runs/{run}/learned", EXPORT),
    ("GET", "/api/v1/runs/{run}/losses", READ),
    ("POST", "/api/v1/runs/{run}/pause", STEER),
    ("GET", "/api/v1/runs/{run}/points", READ),
    ("GET", "/api/v1/runs/{run}/readings", READ),
    ("POST", "/api/v1/runs/{run}/restore", STEER),
    ("POST", "/api/v1/runs/{run}/resume", STEER),
    ("POST", "/api/v1/runs/{run}/review", Visitors),
    ("POST", "/api/v1/runs/{run}/stop", STEER),
    ("POST", "/api/v1/runs/{run}/teacher", STEER),
    ("POST", "/api/v1/runs/{run}/try", Trying),
    ("POST", "/api/v1/runs/{run}/updates", AGENT),
    ("GET", "/api/v1/studies", READ),
    ("GET", "/api/v1/studies/{study}", READ),
    ("PATCH", "/api/v1/studies/{study}", ADMIN),
    ("GET", "/api/v1/studies/{study}/comparison", READ),
    ("GET", "/api/v1/studies/{study}/participants", EXPORT),
    ("POST", "/api/runs/{run}/go-on", STEER),
];

/// The rule of an address and method.
pub fn rule_of(route: &str, method: &str) -> Option<Rule> {
    let find = |route: &str| {
        let fits = |(methods, path, _): &&(&str, &str, Rule)| *path == route && methods.split(' ').any(|m| m == method);
        RULES.iter().find(fits).map(|(_, _, rule)| *rule)
    };
    let older = || route.strip_prefix("/api").filter(|rest| !rest.starts_with("/v1/"));
    find(route).or_else(|| find(&format!("/api/v1{}", older()?)))
}

impl Rule {
    /// Whether somebody is let in.
    pub fn lets_in(self, who: Who, route: &str) -> bool {
        let visits = match who {
            Who::Visitor | Who::OtherVisitor | Who::Token(Scope::Teach) => true,
            // It teaches under the name of the token, at the addresses of programs alone.
            Who::AccessToken => route.starts_with("/api/v1/"),
            _ => false,
        };
        let steers = |scopes: &[Scope]| match who {
            Who::Account(role) => role.steers(),
            Who::AccessToken | Who::Token(Scope::Admin) => true,
            Who::Token(scope) => scopes.contains(&scope),
            _ => false,
        };
        match self {
            Rule::Everyone | Rule::Entering | Rule::Holding => true,
            Rule::Visitors | Rule::Own => visits,
            Rule::Trying => matches!(who, Who::Visitor | Who::OtherVisitor) || steers(&[Scope::Steer]),
            Rule::Viewers => visits || Rule::Reviewing.lets_in(who, route),
            Rule::Steering(scopes) => steers(scopes),
            Rule::Reviewing => steers(&[]) || who == Who::Account(Role::Reviewer),
            Rule::Removing => steers(&[]) && who != Who::Account(Role::Researcher),
            Rule::Owners => who == Who::Account(Role::Owner),
            Rule::SignedIn | Rule::OwnAccount => matches!(who, Who::Account(_)),
        }
    }

    /// Whether the thing that the address names is somebody else's, for an asker who may have things of this kind.
    pub fn is_somebody_elses(self, who: Who, route: &str) -> bool {
        match self {
            Rule::Own => self.lets_in(who, route) && who != Who::Visitor,
            Rule::OwnAccount => matches!(who, Who::Account(_)),
            _ => false,
        }
    }

    /// Whether the run or study in the address is one that everybody can see, so that its existence is no secret.
    pub fn is_of_teachers(self) -> bool {
        matches!(self, Rule::Visitors | Rule::Own | Rule::Trying)
    }

    /// Whether a table may change although nothing else may: a page holds an execution for a visitor, and so does the one that comes
    /// back with words that could not be stored.
    pub fn may_change(self, route: &str, table: &str) -> bool {
        matches!(self, Rule::Holding | Rule::Own)
            && route == "/teach/{run}"
            && ["leases", "executions"].contains(&table)
    }
}
