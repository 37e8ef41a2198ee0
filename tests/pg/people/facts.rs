//! What the tables say, read by the owner, and what should follow from it.

use std::collections::BTreeSet;

use crate::plain::{Town, pairs};

type Pairs = BTreeSet<(String, String)>;

/// See the module.
pub struct Facts {
    owners: Pairs,
    robots: Pairs,
    orgs: Pairs,
    frozen: Pairs,
    members: Pairs,
    viewers: Pairs,
    editors: Pairs,
    banned: Pairs,
    /// Role and permission.
    roles: Pairs,
    role_orgs: Pairs,
    /// `DOC/ROLE` and holder.
    held: Pairs,
}

/// Shares of a relation as pairs of object and subject; a team is `team:1`, everyone `user:*`.
async fn shares(town: &Town, relation: &str, kinds: &[(&str, &str)]) -> Pairs {
    let mut all = Pairs::new();
    for (table, subject) in kinds {
        let live = "(starts IS NULL OR starts <= now()) AND (expires IS NULL OR expires > now()) AND caveat IS NULL";
        let sql = format!("SELECT object::text, {subject} FROM authz_int.share__doc__{relation}__{table} WHERE {live}");
        all.extend(pairs(town, &sql).await);
    }
    all
}

impl Facts {
    pub async fn read(town: &Town) -> Facts {
        let (user, service, team) = ("subject::text", "'service:' || subject", "'team:' || subject");
        Facts {
            owners: pairs(town, "SELECT id::text, owner_id::text FROM app.docs WHERE owner_id IS NOT NULL").await,
            robots: pairs(town, "SELECT id::text, 'service:' || robot_code FROM app.docs WHERE robot_code <> ''").await,
            orgs: pairs(town, "SELECT id::text, org_id::text FROM app.docs WHERE org_id IS NOT NULL").await,
            frozen: pairs(town, "SELECT id::text, '' FROM app.docs WHERE frozen").await,
            members: pairs(
                town,
                "SELECT 'team:' || team_id, user_id::text FROM app.team_users
                 UNION ALL SELECT 'team:' || team_id, 'service:' || service_code FROM app.team_services",
            )
            .await,
            viewers: shares(
                town,
                "viewer",
                &[
                    ("user", user),
                    ("service", service),
                    ("team__member", team),
                    ("all", "'user:*'"),
                    ("all__service", "'service:*'"),
                    ("anyone", "'anyone'"),
                ],
            )
            .await,
            editors: shares(town, "editor", &[("user", user), ("team__member", team)]).await,
            banned: shares(town, "banned", &[("user", user), ("service", service)]).await,
            roles: pairs(town, "SELECT id::text, unnest(permissions) FROM authz_int.roles WHERE type = 'doc'").await,
            role_orgs: pairs(town, "SELECT id::text, owner_id FROM authz_int.roles WHERE owner_type = 'org'").await,
            held: pairs(
                town,
                "SELECT object || '/' || role, subject::text FROM authz_int.role__doc__user
                 UNION ALL SELECT object || '/' || role, 'service:' || subject FROM authz_int.role__doc__service
                 UNION ALL SELECT object || '/' || role, 'team:' || subject FROM authz_int.role__doc__team__member",
            )
            .await,
        }
    }

    /// Whether somebody is among those with whom something is shared.
    fn is_one_of(&self, who: Option<&str>, key: &str, shared: &Pairs) -> bool {
        shared.iter().filter(|(object, _)| object == key).any(|(_, subject)| match (subject.as_str(), who) {
            ("anyone", _) => true,
            (_, None) => false,
            ("user:*", Some(who)) => !who.starts_with("service:"),
            ("service:*", Some(who)) => who.starts_with("service:"),
            (team, Some(who)) if team.starts_with("team:") => self.members.contains(&(team.to_owned(), who.to_owned())),
            (one, Some(who)) => one == who,
        })
    }

    fn by_role(&self, who: Option<&str>, permission: &str, doc: &str) -> bool {
        let org = self.orgs.iter().find(|(id, _)| id == doc).map(|(_, org)| org.clone());
        let Some(org) = org else { return false };
        self.roles.iter().filter(|(_, p)| p == permission).any(|(role, _)| {
            self.role_orgs.contains(&(role.clone(), org.clone()))
                && self.is_one_of(who, &format!("{doc}/{role}"), &self.held)
        })
    }

    /// Whether somebody holds a permission on a document.
    pub fn holds(&self, who: Option<&str>, permission: &str, doc: &str) -> bool {
        let named = |set: &Pairs| who.is_some_and(|who| set.contains(&(doc.to_owned(), who.to_owned())));
        let frozen = self.frozen.iter().any(|(id, _)| id == doc);
        match permission {
            "share" => named(&self.owners),
            "edit" => {
                named(&self.owners)
                    || named(&self.robots)
                    || (!frozen && self.is_one_of(who, doc, &self.editors))
                    || self.by_role(who, "edit", doc)
            }
            "view" => {
                self.holds(who, "edit", doc)
                    || self.is_one_of(who, doc, &self.viewers)
                    || self.by_role(who, "view", doc)
            }
            "read" => !self.is_one_of(who, doc, &self.banned) && self.holds(who, "view", doc),
            "listen" => who.is_some() && !self.is_one_of(who, doc, &self.banned),
            other => panic!("no permission {other}"),
        }
    }
}
