//! What the language has and this release does not make, each with its line. A policy is never half enforced.

use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::{Model, Place, Subject, TestStep};

use super::context::not_built;

/// Everything in the policy that cannot be made yet.
pub fn not_yet(model: &Model) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for def in &model.types {
        if def.signs_in && def.name != "user" {
            found.push(not_built(def.span, "a type other than user that signs in"));
        }
        if let Some(roles) = &def.roles {
            found.push(not_built(roles.span, "roles made at run time"));
        }
        for relation in &def.relations {
            for source in &relation.sources {
                let Place::Shared { condition, .. } = &source.place else { continue };
                if let Some(condition) = condition {
                    found.push(not_built(condition.span, "a condition on a shared relation"));
                }
                if source.subject == Subject::Link {
                    found.push(not_built(source.span, "sharing by link"));
                }
            }
        }
    }
    found.extend(model.caveats.iter().map(|caveat| not_built(caveat.span, "a caveat")));
    // The built-in scope is harmless as long as nothing signs in under one.
    let own = model.scopes.iter().filter(|scope| !scope.items.is_empty() && scope.span != Default::default());
    found.extend(own.map(|scope| not_built(scope.span, "a scope")));
    found.extend(model.invariants.iter().map(|invariant| not_built(invariant.span, "an invariant")));
    for step in model.tests.iter().flat_map(|test| &test.steps) {
        if let TestStep::Check { scopes, span, .. }
        | TestStep::Run { scopes, span, .. }
        | TestStep::Sees { scopes, span, .. } = step
            && !scopes.is_empty()
        {
            found.push(not_built(*span, "a test under a scope"));
        }
    }
    found
}
