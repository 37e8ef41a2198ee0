//! `authz.share`, `authz.unshare` and `authz.list_shares`: one arm for each shared relation and kind of subject.

use crate::compiler::ident::literal;
use crate::compiler::model::TypeId;

use super::api::Api;
use super::context::{Emit, Policy};
use super::names::{self, ShareSubject};
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

impl Policy<'_> {
    /// The functions that make, end and list shares.
    pub fn share_api(&self, shares: &[Share], made: &mut Made) -> Emit<()> {
        let mut share_arms = String::new();
        let mut unshare_arms = String::new();
        for share in shares {
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
        let caveats = "  IF authz__caveat IS NOT NULL OR authz__args IS NOT NULL THEN\n    \
                       RAISE EXCEPTION 'AZ706: the policy has no caveat %', quote_literal(coalesce(authz__caveat, '')) USING ERRCODE = 'P0001';\n  END IF;\n";
        Api {
            name: "authz.share",
            args: &args,
            returns: "void",
            volatility: "VOLATILE",
            declare: "",
            body: format!("{caveats}{share_arms}{unknown}"),
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
        self.list_shares(shares, made)
    }

    /// `IF` this is the share that the arguments name and the caller may share it `THEN`.
    fn arm_head(&self, share: &Share) -> Emit<String> {
        let def = self.ty(share.object)?;
        let subject = match &share.subject {
            ShareSubject::One(name) => {
                format!(
                    "authz__subject_kind = {} AND authz__subject_relation = '' AND authz__subject_id <> '*'",
                    literal(name)
                )
            }
            ShareSubject::Group(name, member) => {
                format!("authz__subject_kind = {} AND authz__subject_relation = {}", literal(name), literal(member))
            }
            ShareSubject::Everyone => {
                let user = &self.ty(self.model.user)?.name;
                format!(
                    "authz__subject_kind = {} AND authz__subject_relation = '' AND authz__subject_id = '*'",
                    literal(user)
                )
            }
            ShareSubject::Anyone => "authz__subject_kind = 'anyone'".to_owned(),
        };
        Ok(format!(
            "  IF authz__kind = {} AND authz__relation = {} AND {subject} THEN\n    \
             IF NOT EXISTS (SELECT FROM {} v WHERE {}) THEN\n      \
             RAISE EXCEPTION 'AZ705: sharing this needs the permission {}' USING ERRCODE = '42501';\n    END IF;\n",
            literal(&def.name),
            literal(&share.relation_name),
            names::view(def, &share.by),
            self.is_named(share.object, "v", "id", "authz__id")?,
            share.by
        ))
    }

    /// The condition that the id in columns called `prefix` of `alias` is the one that a text names.
    fn is_named(&self, ty: TypeId, alias: &str, prefix: &str, text: &str) -> Emit<String> {
        let key = self.key(ty)?;
        Ok(key.of_columns(alias, prefix).equals(&key.of_text(text)))
    }

    /// Locks a row at one end of a share, so that it cannot be deleted in between.
    fn hold_end(&self, ty: TypeId, id: &str) -> Emit<String> {
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

    fn share_arm(&self, share: &Share) -> Emit<String> {
        let mut arm = self.arm_head(share)?;
        arm.push_str(&self.hold_end(share.object, "authz__id")?);
        let object_key = self.key(share.object)?;
        let object = object_key.named("object").join(", ");
        let (column, value, unique) = match share.subject_type {
            Some(ty) => {
                arm.push_str(&self.hold_end(ty, "authz__subject_id")?);
                let key = self.key(ty)?;
                let subject = key.named("subject").join(", ");
                let value = key.of_text("authz__subject_id").list();
                (format!("{subject}, "), format!("{value}, "), format!("({subject}, {object})"))
            }
            None => (String::new(), String::new(), format!("({object})")),
        };
        arm.push_str(&format!(
            "    INSERT INTO {} ({object}, {column}starts, expires, made_by)\n    \
             VALUES ({}, {value}authz__starts, authz__expires, coalesce(authz.principal(), ''))\n    \
             ON CONFLICT {unique} DO UPDATE SET starts = excluded.starts, expires = excluded.expires, made_by = excluded.made_by;\n    \
             RETURN;\n  END IF;\n",
            share.table,
            object_key.of_text("authz__id").list()
        ));
        Ok(arm)
    }

    fn unshare_arm(&self, share: &Share) -> Emit<String> {
        let subject = match share.subject_type {
            Some(ty) => format!(" AND {}", self.is_named(ty, "s", "subject", "authz__subject_id")?),
            None => String::new(),
        };
        Ok(format!(
            "{}    DELETE FROM {} s WHERE {}{subject};\n    RETURN FOUND;\n  END IF;\n",
            self.arm_head(share)?,
            share.table,
            self.is_named(share.object, "s", "object", "authz__id")?
        ))
    }

    fn list_shares(&self, shares: &[Share], made: &mut Made) -> Emit<()> {
        let mut body = String::new();
        for share in shares {
            let def = self.ty(share.object)?;
            let key = self.key(share.object)?;
            let user = &self.ty(self.model.user)?.name;
            let subject = match share.subject_type {
                Some(ty) => self.key(ty)?.text(&self.key(ty)?.of_columns("s", "subject")),
                None => String::new(),
            };
            let (kind, id, relation) = match &share.subject {
                ShareSubject::One(name) => (name.as_str(), subject.as_str(), ""),
                ShareSubject::Group(name, member) => (name.as_str(), subject.as_str(), member.as_str()),
                ShareSubject::Everyone => (user.as_str(), "'*'", ""),
                ShareSubject::Anyone => ("anyone", "''", ""),
            };
            body.push_str(&format!(
                "  IF authz__kind = {} THEN\n    RETURN QUERY SELECT {}, {}, {id}, {}, s.starts, s.expires, s.made_by, s.made_at\n    \
                 FROM {} s WHERE {} AND EXISTS (SELECT FROM {} v WHERE {}) ORDER BY s.made_at;\n  END IF;\n",
                literal(&def.name),
                literal(&share.relation_name),
                literal(kind),
                literal(relation),
                share.table,
                self.is_named(share.object, "s", "object", "authz__id")?,
                names::view(def, &share.by),
                key.of_view("v").equals(&key.of_columns("s", "object"))
            ));
        }
        body.push_str("  RETURN;");
        Api {
            name: "authz.list_shares",
            args: &["kind text", "id text"],
            returns: "TABLE(relation text, subject_kind text, subject_id text, subject_relation text, starts timestamptz, \
                      expires timestamptz, made_by text, made_at timestamptz)",
            volatility: "STABLE",
            declare: "",
            body,
        }
        .add(made);
        Ok(())
    }
}
