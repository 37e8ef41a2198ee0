//! Questions of the Inspect screen.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::{Context, Slot};
use crate::app::message::Message;
use crate::app::model::inspect::{
    Ask, BrowseRow, BrowseView, Children, Holder, Holders, ObjectRef, ObjectView, PersonRow, PersonView, Told, TypeRow,
    WhyView,
};
use crate::compiler::model::{Model as Policy, TypeDef};
use crate::db::as_role::Principal;
use crate::db::children::Cursor;
use crate::db::connect::Session;
use crate::db::error::DbError;
use crate::db::inspect::{Inspector, Named, model_in_force};

/// Holders read of each permission.
const HOLDERS: u32 = 100;
/// Rows of a page.
const PAGE: u32 = 50;

/// The policy in force, as of its version.
type Known = (i64, Arc<Policy>);

/// Asks, on a session of its own.
#[derive(Debug, Clone, Default)]
pub struct Questions {
    slot: Slot,
    known: Arc<Mutex<Option<Known>>>,
}

impl Questions {
    /// Answers one.
    pub async fn answer(&self, context: &Context, asked: u64, ask: Ask) {
        let told = match self.ask(context, ask).await {
            Ok(told) => told,
            Err(error) => Told::Failed(error.to_string()),
        };
        context.tell(Message::Told { asked, told: Box::new(told) }).await;
    }

    async fn ask(&self, context: &Context, ask: Ask) -> Result<Told, DbError> {
        let held = self.slot.open(&context.target).await?;
        let Some(session) = held.as_ref() else { return Err(DbError::Unexpected("no session".into())) };
        let policy = self.policy(session).await?;
        let inspector = Inspector::new(&session.client, &policy);
        match ask {
            Ask::Object(object) => object_view(&inspector, &policy, object).await,
            Ask::Person { person, ty, after } => person_view(&inspector, &policy, person, ty, after).await,
            Ask::Types => Ok(Told::Types(types(&policy))),
            Ask::Children { of, from } => children(&inspector, of, from).await,
            Ask::Browse { ty, after } => browse(&inspector, ty, after).await,
            Ask::Why { person, object, permission } => why(&inspector, &person, &object, &permission).await,
        }
    }

    async fn policy(&self, session: &Session) -> Result<Arc<Policy>, DbError> {
        let version = session.info.require_policy()?.version;
        let mut known = self.known.lock().await;
        match known.as_ref() {
            Some((at, policy)) if *at == version => Ok(Arc::clone(policy)),
            _ => {
                let policy = Arc::new(model_in_force(session).await?);
                *known = Some((version, Arc::clone(&policy)));
                Ok(policy)
            }
        }
    }
}

fn clean(text: &str) -> String {
    crate::text::line(text).into_owned()
}

fn principal(who: &ObjectRef) -> Principal {
    Principal::Of { ty: who.ty.clone(), id: who.id.clone() }
}

fn holder(named: Named) -> Holder {
    Holder { who: ObjectRef { ty: clean(&named.ty), id: clean(&named.id) }, label: named.label.map(|l| clean(&l)) }
}

fn has_no(object: &ObjectRef) -> DbError {
    DbError::Usage(format!("there is no {}", clean(&object.to_string())))
}

async fn object_view(inspector: &Inspector<'_>, policy: &Policy, object: ObjectRef) -> Result<Told, DbError> {
    let row = inspector.object(&object.ty, &object.id).await?.ok_or_else(|| has_no(&object))?;
    let mut permissions = Vec::new();
    let declared = policy.type_named(&object.ty).and_then(|id| policy.ty(id));
    for permission in declared.iter().flat_map(|ty| &ty.permissions) {
        let page = inspector.who(&object.ty, &object.id, &permission.name, HOLDERS).await?;
        permissions.push(Holders {
            permission: permission.name.clone(),
            cut: page.after.is_some(),
            who: page.rows.into_iter().map(holder).collect(),
        });
    }
    Ok(Told::Object(ObjectView { object, label: row.label.map(|l| clean(&l)), permissions }))
}

/// The types that have rules, in the order of the policy.
fn governed(policy: &Policy) -> Vec<String> {
    policy.rules.iter().filter_map(|rules| policy.ty(rules.ty)).map(|ty| ty.name.clone()).collect()
}

async fn person_view(
    inspector: &Inspector<'_>,
    policy: &Policy,
    person: ObjectRef,
    ty: String,
    after: Option<String>,
) -> Result<Told, DbError> {
    let types = governed(policy);
    let ty = if ty.is_empty() { types.first().cloned().unwrap_or_default() } else { ty };
    let row = inspector.object(&person.ty, &person.id).await?.ok_or_else(|| has_no(&person))?;
    let who = principal(&person);
    let page = inspector.sees(&who, &ty, after.as_deref(), PAGE).await?;
    let mut rows = Vec::new();
    for row in page.rows {
        let permissions = inspector.perms(&who, &ty, &row.id).await?;
        let permissions = permissions.iter().map(|p| clean(p)).collect();
        rows.push(PersonRow { id: clean(&row.id), label: row.label.map(|l| clean(&l)), permissions });
    }
    let label = row.label.map(|l| clean(&l));
    Ok(Told::Person(PersonView { person, label, ty, types, rows, after: page.after }))
}

fn types(policy: &Policy) -> Vec<TypeRow> {
    let row = |ty: &TypeDef| TypeRow { name: ty.name.clone(), table: clean(&ty.table.plain()), signs_in: ty.signs_in };
    policy.types.iter().map(row).collect()
}

async fn children(inspector: &Inspector<'_>, of: ObjectRef, from: Option<String>) -> Result<Told, DbError> {
    let start = from.as_deref().and_then(Cursor::parse).unwrap_or_default();
    let (rows, more) = inspector.children(&of.ty, &of.id, &start, PAGE).await?;
    let rows = rows.into_iter().map(|child| (holder(child.object), child.through)).collect();
    Ok(Told::Children(Children { of, from, rows, more: more.map(|cursor| cursor.to_string()) }))
}

async fn browse(inspector: &Inspector<'_>, ty: String, after: Option<String>) -> Result<Told, DbError> {
    let page = inspector.browse(&ty, after.as_deref(), PAGE).await?;
    let row = |named: Named| {
        let Holder { who, label } = holder(named);
        BrowseRow { who, label, ..BrowseRow::default() }
    };
    let rows = page.rows.into_iter().map(row).collect();
    Ok(Told::Browse(BrowseView { title: ty.clone(), ty, rows, after: page.after }))
}

async fn why(
    inspector: &Inspector<'_>,
    person: &ObjectRef,
    object: &ObjectRef,
    permission: &str,
) -> Result<Told, DbError> {
    let why = inspector.why(&principal(person), &object.ty, &object.id, permission).await?;
    Ok(Told::Why(WhyView { question: why.question(), lines: why.lines() }))
}
