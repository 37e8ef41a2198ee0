//! `authz.share`, `authz.unshare`, `authz.list_shares` and share links: one arm for each shared relation, and each type's
//! roles, with each kind of subject.

use crate::compiler::ident::literal;
use crate::compiler::model::TypeId;

use super::api::Api;
use super::context::{Emit, Policy};
use super::names::{self, ShareSubject};
use super::principals::CAVEAT;
use super::shares::Share;
use super::views::Made;

const ARGS: [&str; 6] = [
    "kind text",
    "id text",
    "relation text",
    "subject_kind text",
    "subject_id text",
    "subject_relation text DEFAULT ''",
];

/// The number in `role:12`, the relation by which a role is shared.
const ROLE: &str = "substr(authz__relation, 6)::bigint";

impl Policy<'_> {
    /// The functions that make, end and list shares.
    pub fn share_api(&self, shares: &[Share], made: &mut Made) -> Emit<()> {
        let mut share_arms = String::new();
        let mut unshare_arms = String::new();
        for share in shares.iter().filter(|share| share.subject != ShareSubject::Link) {
            share_arms.push_str(&self.share_arm(share)?);
            unshare_arms.push_str(&self.unshare_arm(share)?);
        }
        let unknown = "  RAISE EXCEPTION 'AZ706: the policy does not let % be shared as % with %', authz__kind, authz__relation, \
                       concat_ws('#', authz__subject_kind, nullif(authz__subject_relation, '')) USING ERRCODE = 'P0001';";
        let mut args = ARGS.to_vec();
        args.extend([
            "expires timestamptz DEFAULT NULL",
            "starts timestamptz DEFAULT NULL",
            "caveat text DEFAULT NULL",
            "args jsonb DEFAULT NULL",
        ]);
        Api {
            name: "authz.share",
            args: &args,
            returns: "void",
            volatility: "VOLATILE",
            declare: "",
            body: format!("{}{share_arms}{unknown}", self.check_caveat()),
        }
        .add(made);
        Api {
            name: "authz.unshare",
            args: &ARGS,
            returns: "boolean",
            volatility: "VOLATILE",
            declare: "",
            body: format!("{unshare_arms}{unknown}"),
        }
        .add(made);
        self.list_shares(shares, made)?;
        self.links(shares, made)
    }

    /// Refuses a caveat that the policy does not have, or arguments without one.
    fn check_caveat(&self) -> String {
        let names: Vec<String> = self.model.caveats.iter().map(|caveat| literal(&caveat.name)).collect();
        format!(
            "  IF authz__caveat IS NOT NULL AND NOT authz__caveat = ANY (ARRAY[{}]::text[]) THEN\n    \
             RAISE EXCEPTION 'AZ707: the policy has no caveat %', quote_literal(authz__caveat) USING ERRCODE = 'P0001';\n  END IF;\n  \
             IF authz__args IS NOT NULL AND (authz__caveat IS NULL OR jsonb_typeof(authz__args) <> 'object') THEN\n    \
             RAISE EXCEPTION 'AZ710: arguments are an object, and for a caveat' USING ERRCODE = '22023';\n  END IF;\n",
            names.join(", ")
        )
    }

    /// The condition that the arguments name this kind of share.
    fn is_share(&self, share: &Share) -> Emit<String> {
        let subject = match &share.subject {
            ShareSubject::One(name) => format!(
                "authz__subject_kind = {} AND authz__subject_relation = '' AND authz__subject_id <> '*'",
                literal(name)
            ),
            ShareSubject::Group(name, member) => {
                format!("authz__subject_kind = {} AND authz__subject_relation = {}", literal(name), literal(member))
            }
            ShareSubject::Everyone(name) => format!(
                "authz__subject_kind = {} AND authz__subject_relation = '' AND authz__subject_id = '*'",
                literal(name)
            ),
            ShareSubject::Anyone => "authz__subject_kind = 'anyone'".to_owned(),
            ShareSubject::Link => "true".to_owned(),
        };
        let relation = match &share.relation {
            Some(name) => format!("authz__relation = {}", literal(name)),
            None => "authz__relation ~ '^role:[0-9]{1,18}$'".to_owned(),
        };
        Ok(format!("authz__kind = {} AND {relation} AND {subject}", literal(&self.ty(share.object)?.name)))
    }

    /// `IF` the caller may not share this `THEN` it is refused.
    fn may_share(&self, share: &Share) -> Emit<String> {
        let def = self.ty(share.object)?;
        let by = &self.permission(share.object, share.by)?.name;
        Ok(format!(
            "    IF NOT {} OR NOT EXISTS (SELECT FROM {} v WHERE {}) THEN\n      \
             RAISE EXCEPTION 'AZ705: sharing this needs the permission {by}' USING ERRCODE = '42501';\n    END IF;\n",
            self.may_use(share.object, share.by)?,
            names::view(def, by),
            self.is_named(share.object, "v", "id", "authz__id")?,
        ))
    }

    /// The condition that the id in columns called `prefix` of `alias` is the one that a text names.
    fn is_named(&self, ty: TypeId, alias: &str, prefix: &str, text: &str) -> Emit<String> {
        let key = self.key(ty)?;
        Ok(key.of_columns(alias, prefix).equals(&key.of_text(text)))
    }

    /// Locks a row at one end of a share, so that it cannot be deleted in between.
    pub fn hold_end(&self, ty: TypeId, id: &str) -> Emit<String> {
        let def = self.ty(ty)?;
        let key = self.key(ty)?;
        Ok(format!(
            "    PERFORM FROM {} AS this WHERE {}{} FOR KEY SHARE;\n    \
             IF NOT FOUND THEN\n      RAISE EXCEPTION 'AZ708: there is no {} %', {id} USING ERRCODE = 'P0001';\n    END IF;\n",
            def.table,
            key.of_row("this").equals(&key.of_text(id)),
            self.counts(ty, "this")?,
            def.name
        ))
    }

    /// Holds both ends of a share, also against a delete with an older snapshot.
    fn hold_ends(&self, share: &Share) -> Emit<String> {
        let mut text = self.hold_end(share.object, "authz__id")?;
        let mut ends = vec![self.end_text(share.object, "authz__id")?];
        if let Some(ty) = share.subject_type {
            text.push_str(&self.hold_end(ty, "authz__subject_id")?);
            ends.push(self.end_text(ty, "authz__subject_id")?);
        }
        text.push_str(&format!("    PERFORM authz_int.guard_ends(ARRAY[{}]);\n", ends.join(", ")));
        if let Some(condition) = &share.condition {
            let key = self.key(share.object)?;
            text.push_str(&format!(
                "    IF NOT EXISTS (SELECT FROM {} AS this WHERE {} AND {}) THEN\n      \
                 RAISE EXCEPTION 'AZ706: the policy does not let this % be shared as it stands', authz__kind USING ERRCODE = 'P0001';\n    END IF;\n",
                self.ty(share.object)?.table,
                key.of_row("this").equals(&key.of_text("authz__id")),
                self.on_row(&self.ty(share.object)?.table, condition, "this")
            ));
        }
        Ok(text)
    }

    /// `TYPE ID` as the guard of shares knows an end, from an id's text.
    pub fn end_text(&self, ty: TypeId, id: &str) -> Emit<String> {
        let key = self.key(ty)?;
        Ok(format!("{} || {}", literal(&format!("{} ", self.ty(ty)?.name)), key.text(&key.of_text(id))))
    }

    /// A role is shared by those who hold everything in it, and only where it counts.
    fn check_role(&self, share: &Share) -> Emit<String> {
        let def = self.ty(share.object)?;
        let Some(roles) = &def.roles else { return Ok(String::new()) };
        let owner = self.ty(roles.owner)?;
        let key = self.key(share.object)?;
        Ok(format!(
            "    PERFORM FROM authz_int.roles r, {table} AS this WHERE r.id = {ROLE} AND r.type = {kind} AND r.owner_type = {owner}\n      \
             AND {same} AND r.owner_id = {owner_id} FOR KEY SHARE OF r;\n    \
             IF NOT FOUND THEN\n      RAISE EXCEPTION 'AZ708: there is no role % for this {name}', {ROLE} USING ERRCODE = 'P0001';\n    END IF;\n    \
             IF EXISTS (SELECT FROM authz_int.roles r, unnest(r.permissions) p WHERE r.id = {ROLE} AND NOT authz.can(authz__kind, authz__id, p)) THEN\n      \
             RAISE EXCEPTION 'AZ705: sharing a role needs every permission in it' USING ERRCODE = '42501';\n    END IF;\n",
            table = def.table,
            kind = literal(&def.name),
            owner = literal(&owner.name),
            same = key.of_row("this").equals(&key.of_text("authz__id")),
            owner_id = self.role_owner_text(share.object, "this")?,
            name = def.name,
        ))
    }

    fn share_arm(&self, share: &Share) -> Emit<String> {
        let mut arm = format!("  IF {} THEN\n{}", self.is_share(share)?, self.may_share(share)?);
        if share.lasting {
            arm.push_str(
                "    IF authz__expires IS NOT NULL OR authz__starts IS NOT NULL OR authz__caveat IS NOT NULL THEN\n      \
                 RAISE EXCEPTION 'AZ706: permissions are inherited through this relation, so it is shared until it is taken back' USING ERRCODE = 'P0001';\n    END IF;\n",
            );
        }
        arm.push_str(&self.hold_ends(share)?);
        let object_key = self.key(share.object)?;
        let mut columns = object_key.named("object");
        let mut values = vec![object_key.of_text("authz__id").list()];
        let mut unique = self.subject_columns(share)?;
        unique.extend(object_key.named("object"));
        if let Some(ty) = share.subject_type {
            columns.extend(self.subject_columns(share)?);
            values.push(self.key(ty)?.of_text("authz__subject_id").list());
        }
        if share.relation.is_none() {
            arm.push_str(&self.check_role(share)?);
            columns.push("role".to_owned());
            values.push(ROLE.to_owned());
            unique.push("role".to_owned());
        }
        let rest = ["starts", "expires", "caveat", "args", "made_by"];
        let again: Vec<String> = rest.iter().map(|column| format!("{column} = excluded.{column}")).collect();
        arm.push_str(&format!(
            "    INSERT INTO {} ({}, {})\n    \
             VALUES ({}, authz__starts, authz__expires, authz__caveat, authz__args, coalesce(authz.principal(), ''))\n    \
             ON CONFLICT ({}) DO UPDATE SET {};\n    RETURN;\n  END IF;\n",
            share.table,
            columns.join(", "),
            rest.join(", "),
            values.join(", "),
            unique.join(", "),
            again.join(", ")
        ));
        Ok(arm)
    }

    fn unshare_arm(&self, share: &Share) -> Emit<String> {
        let mut which = self.is_named(share.object, "s", "object", "authz__id")?;
        if let Some(ty) = share.subject_type {
            which.push_str(&format!(" AND {}", self.is_named(ty, "s", "subject", "authz__subject_id")?));
        }
        if share.relation.is_none() {
            which.push_str(&format!(" AND s.role = {ROLE}"));
        }
        Ok(format!(
            "  IF {} THEN\n{}    DELETE FROM {} s WHERE {which};\n    RETURN FOUND;\n  END IF;\n",
            self.is_share(share)?,
            self.may_share(share)?,
            share.table,
        ))
    }

    fn list_shares(&self, shares: &[Share], made: &mut Made) -> Emit<()> {
        let mut body = String::new();
        for share in shares.iter().filter(|share| share.subject != ShareSubject::Link) {
            let def = self.ty(share.object)?;
            let key = self.key(share.object)?;
            let subject = match share.subject_type {
                Some(ty) => self.key(ty)?.text(&self.key(ty)?.of_columns("s", "subject")),
                None => String::new(),
            };
            let (kind, id, member) = match &share.subject {
                ShareSubject::One(name) => (name.as_str(), subject.as_str(), ""),
                ShareSubject::Group(name, member) => (name.as_str(), subject.as_str(), member.as_str()),
                ShareSubject::Everyone(name) => (name.as_str(), "'*'", ""),
                ShareSubject::Anyone | ShareSubject::Link => ("anyone", "''", ""),
            };
            let relation = match &share.relation {
                Some(name) => literal(name),
                None => "'role:' || s.role".to_owned(),
            };
            body.push_str(&format!(
                "  IF authz__kind = {} AND {} THEN\n    RETURN QUERY SELECT {relation}, {}, {id}, {}, s.starts, s.expires, s.made_by, s.made_at, s.caveat, s.args\n    \
                 FROM {} s WHERE {} AND EXISTS (SELECT FROM {} v WHERE {}) ORDER BY s.made_at;\n  END IF;\n",
                literal(&def.name),
                self.may_use(share.object, share.by)?,
                literal(kind),
                literal(member),
                share.table,
                self.is_named(share.object, "s", "object", "authz__id")?,
                names::view(def, &self.permission(share.object, share.by)?.name),
                key.of_view("v").equals(&key.of_columns("s", "object"))
            ));
        }
        body.push_str("  RETURN;");
        Api {
            name: "authz.list_shares",
            args: &["kind text", "id text"],
            returns: "TABLE(relation text, subject_kind text, subject_id text, subject_relation text, starts timestamptz, \
                      expires timestamptz, made_by text, made_at timestamptz, caveat text, args jsonb)",
            volatility: "STABLE",
            declare: "",
            body,
        }
        .add(made);
        Ok(())
    }

    /// `authz.create_link`, `authz.list_links` and `authz.revoke_link`.
    fn links(&self, shares: &[Share], made: &mut Made) -> Emit<()> {
        let (mut create, mut list, mut revoke) = (String::new(), String::new(), String::new());
        for share in shares.iter().filter(|share| share.subject == ShareSubject::Link) {
            let object = self.key(share.object)?;
            let which = self.is_named(share.object, "s", "object", "authz__id")?;
            create.push_str(&format!(
                "  IF {} THEN\n{}{}    INSERT INTO {} ({}, hash, expires, made_by)\n    \
                 VALUES ({}, sha256(convert_to(authz__token, 'UTF8')), authz__expires, coalesce(authz.principal(), ''));\n    \
                 RETURN authz__token;\n  END IF;\n",
                self.is_share(share)?,
                self.may_share(share)?,
                self.hold_ends(share)?,
                share.table,
                object.named("object").join(", "),
                object.of_text("authz__id").list(),
            ));
            let of_type = format!("authz__kind = {}", literal(&self.ty(share.object)?.name));
            list.push_str(&format!(
                "  IF {of_type} THEN\n{}    RETURN QUERY SELECT s.link, {}, s.expires, s.made_by, s.made_at FROM {} s WHERE {which} ORDER BY s.link;\n  END IF;\n",
                self.may_share(share)?,
                literal(share.relation.as_deref().unwrap_or_default()),
                share.table
            ));
            revoke.push_str(&format!(
                "  IF {of_type} THEN\n{}    DELETE FROM {} s WHERE {which} AND s.link = authz__link;\n    \
                 IF FOUND THEN\n      RETURN true;\n    END IF;\n    authz__known := true;\n  END IF;\n",
                self.may_share(share)?,
                share.table
            ));
        }
        let unknown = "  RAISE EXCEPTION 'AZ706: the policy does not let % be shared by link', authz__kind USING ERRCODE = 'P0001';";
        Api {
            name: "authz.create_link",
            args: &["kind text", "id text", "relation text", "expires timestamptz DEFAULT NULL"],
            returns: "text",
            volatility: "VOLATILE",
            // Two uuids hold 244 bits of the server's strong random source. Only the token's hash is kept.
            declare: "  authz__token text := 'ln_' || replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');\n",
            body: format!("{create}{unknown}"),
        }
        .add(made);
        Api {
            name: "authz.list_links",
            args: &["kind text", "id text"],
            returns: "TABLE(link bigint, relation text, expires timestamptz, made_by text, made_at timestamptz)",
            volatility: "STABLE",
            declare: "",
            body: format!("{list}  RETURN;"),
        }
        .add(made);
        Api {
            name: "authz.revoke_link",
            args: &["kind text", "id text", "link bigint"],
            returns: "boolean",
            volatility: "VOLATILE",
            declare: "  authz__known boolean := false;\n",
            body: format!("{revoke}  IF authz__known THEN\n    RETURN false;\n  END IF;\n{unknown}"),
        }
        .add(made);
        Ok(())
    }

    /// The condition that a share called `share` counts now: started and not expired, as the clock stands at the
    /// statement's start, and its caveat holds.
    pub fn live(&self, share: &str) -> String {
        let clock = format!(
            "({share}.starts IS NULL OR {share}.starts <= statement_timestamp()) \
             AND ({share}.expires IS NULL OR {share}.expires > statement_timestamp())"
        );
        if self.model.caveats.is_empty() {
            return format!("{clock} AND {share}.caveat IS NULL");
        }
        format!(
            "{clock} AND CASE WHEN {share}.caveat IS NULL THEN true ELSE {CAVEAT}({share}.caveat, {share}.args) END"
        )
    }
}
