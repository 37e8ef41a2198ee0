//! Roles that people make at run time: `authz.create_role`, `authz.set_role_permissions`, `authz.delete_role` and
//! `authz.roles_of`. They are shared with `authz.share`, as the relation `role:<id>`.

use crate::compiler::ident::literal;
use crate::compiler::model::{PermId, RelId, TypeId};

use super::api::Api;
use super::context::{Emit, Policy};
use super::names;
use super::views::Made;

/// The permission that managing roles takes, on what owns them.
const MANAGE: &str = "manage_roles";

impl Policy<'_> {
    /// The functions about roles; they are there, and refuse, when the policy has none.
    pub fn role_api(&self, made: &mut Made) -> Emit<()> {
        self.create_role(made)?;
        let known = "  SELECT r.* INTO authz__role_row FROM authz_int.roles r WHERE r.id = authz__role FOR UPDATE;\n";
        let gone = "  RAISE EXCEPTION 'AZ708: there is no role %', authz__role USING ERRCODE = 'P0001';";
        let mut set = String::new();
        let mut delete = String::new();
        for (ty, owner) in self.owners() {
            let def = self.ty(ty)?;
            let head = format!(
                "  IF authz__role_row.type = {} AND authz__role_row.owner_type = {} THEN\n{}",
                literal(&def.name),
                literal(&self.ty(owner)?.name),
                self.may_manage(owner, "authz__role_row.owner_id")?
            );
            set.push_str(&format!(
                "{head}{}    UPDATE authz_int.roles r SET permissions = authz__list WHERE r.id = authz__role;\n    RETURN;\n  END IF;\n",
                self.checked_permissions(ty)?
            ));
            delete.push_str(&format!(
                "{head}    DELETE FROM authz_int.roles r WHERE r.id = authz__role;\n    RETURN true;\n  END IF;\n"
            ));
        }
        Api {
            name: "authz.set_role_permissions",
            args: &["role bigint", "perms text[]"],
            returns: "void",
            volatility: "VOLATILE",
            declare: "  authz__role_row authz_int.roles;\n  authz__list text[];\n",
            body: format!("{known}{set}{gone}"),
        }
        .add(made);
        Api {
            name: "authz.delete_role",
            args: &["role bigint"],
            returns: "boolean",
            volatility: "VOLATILE",
            declare: "  authz__role_row authz_int.roles;\n",
            body: format!("{known}  IF authz__role_row.id IS NULL THEN\n    RETURN false;\n  END IF;\n{delete}{gone}"),
        }
        .add(made);
        self.roles_of(made)
    }

    /// The types with roles, each with the type whose objects own them.
    fn owners(&self) -> impl Iterator<Item = (TypeId, TypeId)> + '_ {
        let with_roles = self.model.types.iter().enumerate();
        with_roles.filter_map(|(at, def)| Some((TypeId(at), def.roles.as_ref()?.owner)))
    }

    /// Refuses whoever may not manage the roles of the owner with this id (SQL text).
    fn may_manage(&self, owner: TypeId, id: &str) -> Emit<String> {
        let def = self.ty(owner)?;
        let key = self.key(owner)?;
        let may = match def.permission_named(MANAGE) {
            Some(permission) => format!(
                "{} AND EXISTS (SELECT FROM {} v WHERE {})",
                self.may_use(owner, permission)?,
                names::view(def, MANAGE),
                key.of_view("v").equals(&key.of_text(id))
            ),
            None => "false".to_owned(),
        };
        Ok(format!(
            "    IF NOT ({may}) THEN\n      RAISE EXCEPTION 'AZ705: roles are managed by those with the permission {MANAGE}' \
             USING ERRCODE = '42501';\n    END IF;\n"
        ))
    }

    /// The permissions of a type that its roles can give, in `authz__list`, without repeats; refuses any other.
    fn checked_permissions(&self, ty: TypeId) -> Emit<String> {
        let def = self.ty(ty)?;
        let given = |at: usize| def.roles_relation(PermId(at)).is_some_and(|rel: RelId| rel.0 < def.relations.len());
        let names: Vec<String> = (def.permissions.iter().enumerate())
            .filter(|(at, _)| given(*at))
            .map(|(_, permission)| literal(&permission.name))
            .collect();
        Ok(format!(
            "    authz__list := ARRAY(SELECT DISTINCT p FROM unnest(authz__perms) p ORDER BY p);\n    \
             IF authz__perms IS NULL OR NOT authz__list <@ ARRAY[{}]::text[] THEN\n      \
             RAISE EXCEPTION 'AZ706: no role of {} can give all of %', coalesce(authz__perms, '{{}}') USING ERRCODE = 'P0001';\n    END IF;\n",
            names.join(", "),
            def.name
        ))
    }

    fn create_role(&self, made: &mut Made) -> Emit<()> {
        let mut arms = String::new();
        for (ty, owner) in self.owners() {
            let def = self.ty(ty)?;
            let owner_def = self.ty(owner)?;
            let key = self.key(owner)?;
            arms.push_str(&format!(
                "  IF authz__owner_kind = {owner_kind} AND authz__kind = {kind} THEN\n{manage}{hold}    \
                 PERFORM authz_int.guard_ends(ARRAY[{end}]);\n{checked}    \
                 INSERT INTO authz_int.roles (owner_type, owner_id, type, name, permissions, made_by)\n    \
                 VALUES ({owner_kind}, {id}, {kind}, authz__name, authz__list, coalesce(authz.principal(), ''))\n    \
                 ON CONFLICT (owner_type, owner_id, type, name) DO NOTHING RETURNING id INTO authz__made;\n    \
                 IF authz__made IS NULL THEN\n      \
                 RAISE EXCEPTION 'AZ710: there is a role called % already', quote_literal(authz__name) USING ERRCODE = '22023';\n    END IF;\n    \
                 RETURN authz__made;\n  END IF;\n",
                owner_kind = literal(&owner_def.name),
                kind = literal(&def.name),
                manage = self.may_manage(owner, "authz__owner_id")?,
                hold = self.hold_end(owner, "authz__owner_id")?,
                end = self.end_text(owner, "authz__owner_id")?,
                checked = self.checked_permissions(ty)?,
                id = key.text(&key.of_text("authz__owner_id")),
            ));
        }
        Api {
            name: "authz.create_role",
            args: &["owner_kind text", "owner_id text", "kind text", "name text", "perms text[]"],
            returns: "bigint",
            volatility: "VOLATILE",
            declare: "  authz__list text[];\n  authz__made bigint;\n",
            body: format!(
                "  IF coalesce(authz__name, '') = '' THEN\n    RAISE EXCEPTION 'AZ710: a role has a name' USING ERRCODE = '22023';\n  END IF;\n{arms}  \
                 RAISE EXCEPTION 'AZ706: the policy has no roles for % that % owns', authz__kind, authz__owner_kind USING ERRCODE = 'P0001';"
            ),
        }
        .add(made);
        Ok(())
    }

    fn roles_of(&self, made: &mut Made) -> Emit<()> {
        let mut owners: Vec<TypeId> = self.owners().map(|(_, owner)| owner).collect();
        owners.sort();
        owners.dedup();
        let mut arms = String::new();
        for owner in owners {
            let key = self.key(owner)?;
            arms.push_str(&format!(
                "  IF authz__owner_kind = {kind} THEN\n{}    \
                 RETURN QUERY SELECT r.id, r.type, r.name, r.permissions, r.made_by, r.made_at FROM authz_int.roles r\n    \
                 WHERE r.owner_type = {kind} AND r.owner_id = {} ORDER BY r.id;\n    RETURN;\n  END IF;\n",
                self.may_manage(owner, "authz__owner_id")?,
                key.text(&key.of_text("authz__owner_id")),
                kind = literal(&self.ty(owner)?.name),
            ));
        }
        Api {
            name: "authz.roles_of",
            args: &["owner_kind text", "owner_id text"],
            returns: "TABLE(role bigint, kind text, name text, permissions text[], made_by text, made_at timestamptz)",
            volatility: "STABLE",
            declare: "",
            body: format!(
                "{arms}  PERFORM authz_int.unknown('type that owns roles ' || quote_literal(authz__owner_kind));"
            ),
        }
        .add(made);
        Ok(())
    }
}
