//! What stands in the way of an apply is all found before it changes anything.

use rowdeck::compiler::ident::{Ident, QualName};
use rowdeck::compiler::model::*;
use rowdeck::compiler::span::{FileId, SourceMap, Span};
use rowdeck::db::connect::Session;
use rowdeck::db::error::DbError;
use rowdeck::db::plan::{Plan, Policy, plan};

use crate::apply_world::{Draft, Ground};

/// The blockers as `AZ601 message`, `- message`.
fn words(plan: &Plan) -> Vec<String> {
    let code = |code: Option<rowdeck::compiler::diagnostic::Code>| code.map_or("-".to_owned(), |c| c.to_string());
    plan.blockers.iter().map(|b| format!("{} {}", code(b.code), b.message)).collect()
}

fn says(plan: &Plan, what: &str) {
    assert!(words(plan).iter().any(|w| w.contains(what)), "no \"{what}\" in {:#?}", words(plan));
}

#[tokio::test]
async fn a_role_without_rights_is_told_everything_at_once() {
    let ground = Ground::new().await;
    let poor = format!("poor_{}", ground.database.name);
    ground.admin.batch_execute(&format!("CREATE ROLE {poor} LOGIN")).await.unwrap();
    let session = Session::open(&ground.database.target(&poor)).await.unwrap();
    let before = ground.fingerprint().await;
    let draft = ground.draft();
    let plan = draft.plan(&session.client).await;
    says(&plan, &format!("- role \"{poor}\" may not create schemas in database \"{}\"", ground.database.name));
    says(&plan, &format!("role \"{poor}\" does not own app.folders, which belongs to \"{}\"", ground.owner));
    says(&plan, "does not own app.folder_links");
    says(&plan, &format!("AZ618 role \"{poor}\" may not switch to the app role"));
    let error = draft.apply(&session).await.unwrap_err();
    assert!(matches!(&error, DbError::Blocked(all) if all.len() == plan.blockers.len()), "{error}");
    assert!(error.to_string().contains("and 3 more in the way"), "{error}");
    assert_eq!(ground.fingerprint().await, before);
}

#[tokio::test]
async fn only_the_role_that_applied_before_applies_again() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    draft.apply(&session).await.unwrap();
    let before = ground.fingerprint().await;
    // Even a superuser: half of the functions would be its own, and could not call the others.
    let other = Session::open(&ground.database.target("postgres")).await.unwrap();
    draft.see = "id > 1".to_owned();
    let plan = draft.plan(&other.client).await;
    says(&plan, "role \"postgres\" does not own schema authz");
    assert!(plan.notes.iter().any(|note| note.contains("is a superuser")), "{:#?}", plan.notes);
    draft.apply(&other).await.unwrap_err();
    assert_eq!(ground.fingerprint().await, before);
}

#[tokio::test]
async fn the_app_role_must_be_bound_by_the_rules() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    draft.model.app_role = Ident::new("nobody_at_all");
    says(&draft.plan(&session.client).await, "AZ618 there is no role \"nobody_at_all\"");
    draft.model.app_role = Ident::new(&ground.owner);
    says(&draft.plan(&session.client).await, "is the role that applies");
    let (member, boss) = (format!("member_{}", ground.database.name), format!("boss_{}", ground.database.name));
    let sql =
        format!("CREATE ROLE {member}; GRANT {owner} TO {member}; CREATE ROLE {boss} SUPERUSER", owner = ground.owner);
    ground.admin.batch_execute(&sql).await.unwrap();
    draft.model.app_role = Ident::new(&member);
    says(
        &draft.plan(&session.client).await,
        &format!("AZ624 the app role \"{member}\" is a member of {}", ground.owner),
    );
    draft.model.app_role = Ident::new(&boss);
    says(&draft.plan(&session.client).await, &format!("AZ624 the app role \"{boss}\" is a superuser"));
}

#[tokio::test]
async fn missing_tables_columns_and_other_key_types_are_named() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    let folder = &mut draft.model.types[0];
    folder.key[0].ty = KeyType::Uuid;
    folder.relations[0].sources[0].place = Place::Column { columns: vec![Ident::new("parnt_id")] };
    let Place::Table { table, .. } = &mut folder.relations[1].sources[0].place else { panic!() };
    *table = QualName::new("app", "Links");
    // Only the model is wrong; what it becomes would fail as well.
    let emitted = ground.draft().emitted();
    let sources = SourceMap::single("docs.authz", "x");
    let policy = Policy { name: "docs.authz", sources: &sources, model: &draft.model, emitted: &emitted };
    let plan = plan(&session.client, &policy).await.unwrap();
    says(&plan, "AZ602 app.folders.id is bigint, and the policy says its key is uuid");
    says(&plan, "AZ601 app.folders has no column parnt_id; did you mean parent_id?");
    says(&plan, "AZ601 there is no table app.\"Links\"");
    assert_eq!(plan.blockers.len(), 3, "{:?}", words(&plan));
}

fn at(text: &str, sql: &str) -> Condition {
    let start = text.find(sql).unwrap();
    Condition { sql: sql.to_owned(), span: Span::new(FileId(0), start, start + sql.len()) }
}

#[tokio::test]
async fn a_condition_that_does_not_run_is_shown_at_its_place() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft: Draft = ground.draft();
    draft.text = "type folder = app.folders\n  can view = {name = 'x' and hiden}\n".to_owned();
    let condition = at(&draft.text, "name = 'x' and hiden");
    let expr = Expr::Sql(condition);
    draft.model.types[0].permissions.push(Permission {
        name: "view".to_owned(),
        expr,
        inherits: None,
        span: Span::default(),
    });
    let plan = draft.plan(&session.client).await;
    assert_eq!(plan.blockers.len(), 1, "{:?}", words(&plan));
    let blocker = &plan.blockers[0];
    assert_eq!(
        blocker.to_string(),
        "docs.authz:2:30: this condition does not run on app.folders: column \"hiden\" does not exist [AZ613]"
    );
    assert_eq!(blocker.diagnostic().unwrap().code.0, 613);
    let span = blocker.span.unwrap();
    assert_eq!(&draft.text[span.start as usize..span.end as usize], "hiden");
}

#[tokio::test]
async fn what_limits_inheritance_must_be_immutable() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let sql = "CREATE FUNCTION app.moody(text) RETURNS boolean LANGUAGE plpgsql STABLE AS 'BEGIN RETURN true; END';
               CREATE FUNCTION app.steady(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'";
    session.client.batch_execute(sql).await.unwrap();
    let before = ground.fingerprint().await;
    let cases = [
        ("inherit", None),
        ("this.inherit and app.steady(this.name)", None),
        ("app.moody(name)", Some("not immutable")),
        ("name < now()::text", Some("not immutable")),
        ("EXISTS (SELECT FROM app.folder_links l WHERE l.folder_id = this.id)", None),
        (
            "EXISTS (SELECT FROM app.folder_links l WHERE l.folder_id = this.id AND app.moody(name))",
            Some("app.moody(text)"),
        ),
        ("EXISTS (SELECT FROM app.folder_links l WHERE now() > '2020-01-01')", Some("now()")),
        ("EXISTS (SELECT FROM app.folder_links l WHERE CURRENT_USER = this.name)", Some("CURRENT_USER")),
    ];
    for (sql, wrong) in cases {
        let mut draft = ground.draft();
        draft.text = sql.to_owned();
        for link in draft.model.graphs.iter_mut().flat_map(|g| &mut g.links).filter(|link| link.condition.is_some()) {
            link.condition = Some(at(sql, sql));
        }
        // The index itself is made of the usual condition: only the check is under test.
        let (emitted, sources) = (ground.draft().emitted(), SourceMap::single("docs.authz", sql));
        let policy = Policy { name: "docs.authz", sources: &sources, model: &draft.model, emitted: &emitted };
        let plan = plan(&session.client, &policy).await.unwrap();
        match wrong {
            None => assert_eq!(plan.blockers, [], "{sql}"),
            Some(why) => {
                assert_eq!(plan.blockers.len(), 1, "{sql}: {:?}", words(&plan));
                says(&plan, "AZ603");
                says(&plan, why);
            }
        }
    }
    assert_eq!(ground.fingerprint().await, before);
}

#[tokio::test]
async fn helpers_are_known_before_the_first_apply() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    let sql = "this.id = authz.uid() or name = authz.ctx('name')";
    draft.text = sql.to_owned();
    draft.model.types[0].condition = Some(at(sql, sql));
    let plan = draft.plan(&session.client).await;
    assert_eq!(plan.blockers, []);
    assert!(ground.one::<bool>("SELECT to_regnamespace('authz') IS NULL").await);
}

#[tokio::test]
async fn a_read_only_session_applies_nothing() {
    let ground = Ground::new().await;
    let mut target = ground.database.target(&ground.owner);
    target.read_only = true;
    let session = Session::open(&target).await.unwrap();
    let plan = ground.draft().plan(&session.client).await;
    says(&plan, "- transactions of this session are read-only");
    let error = ground.draft().apply(&session).await.unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
}
