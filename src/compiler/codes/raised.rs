//! Codes that no policy's text can show: the statement, the command or the state of a database that raises each.

/// What raises a code; `None` for those that a policy shows.
pub fn raised_by(code: u16) -> Option<&'static str> {
    Some(match code {
        601 => "-- with a policy that says: type note = app.notes\nDROP TABLE app.notes;\n-- rowdeck plan",
        602 => {
            "-- with a policy that says: type note = app.notes (id uuid)\nCREATE TABLE app.notes (id bigint PRIMARY KEY);\n-- rowdeck plan"
        }
        603 => {
            "-- with a policy that says: can view = owner or (parent.view and {app.lets_through(id)})\nCREATE FUNCTION app.lets_through(bigint) RETURNS boolean LANGUAGE sql STABLE RETURN true;\n-- rowdeck plan"
        }
        604 => {
            "-- with a policy that says: can view = owner or (parent.view and {id IN (SELECT id FROM app.open)})\nCREATE VIEW app.open AS SELECT id FROM app.folders;\n-- rowdeck plan"
        }
        605 => {
            "-- with a policy that says: parent : folder shared\nSELECT authz.share('folder', 2, 'parent', 'folder', 1, '', '1 hour');"
        }
        606 => {
            "-- after a policy in force with: type user = app.users (id uuid)\n-- rowdeck apply, with a policy that says: type user = app.users (id bigint)"
        }
        607 => "-- of two migrations, the later one first\npsql -1 -f 0002_policy.sql",
        608 => "-- the swap of a migration whose build was not run\npsql -1 -f 0003_swap.sql",
        609 => "-- on a database without a policy\n-- rowdeck verify",
        610 => "UPDATE authz.settings SET value = 'false' WHERE name = 'development';\n-- rowdeck test",
        611 => {
            "-- with a policy that says: mask salary : hr, in rules app.people view app.people_seen\nGRANT SELECT ON app.people TO app_user;\n-- rowdeck plan"
        }
        612 => {
            "GRANT CREATE ON SCHEMA public TO PUBLIC;\nALTER FUNCTION app.may_see(bigint) SET search_path = public;\n-- rowdeck plan, with a condition that calls it"
        }
        613 => "-- with a policy that says: can view = {titel = 'x'}\n-- rowdeck plan",
        614 => {
            "CREATE VIEW app.mine AS SELECT * FROM app.notes WHERE authz.can('note', id, 'view');\n-- rowdeck apply, with a policy whose functions changed"
        }
        615 => "-- without -1\npsql -f 0001_policy.sql",
        616 => "-- an older rowdeck, after a newer one has applied\n-- rowdeck apply",
        617 => {
            "CREATE VIEW app.report AS SELECT * FROM app.people_seen;\n-- rowdeck apply, with a policy that masks another column of it"
        }
        618 => "REVOKE app_user FROM deployer;\n-- rowdeck test, connected as deployer",
        624 => "GRANT app_owner TO app_user;\n-- rowdeck plan",
        625 => {
            "-- with a policy that says: cascade from app.orgs\nALTER TABLE app.notes DROP CONSTRAINT notes_org_id_fkey;\n-- rowdeck plan"
        }
        626 => "-- a newer rowdeck, before it has applied\n-- rowdeck verify",
        701 => "BEGIN;\nSELECT count(*) FROM app.notes;  -- as app_user, and nobody signed in",
        702 => {
            "SELECT authz.act_as('user', '1');\nSELECT set_config('authz.session', 'made up', true);\nSELECT count(*) FROM app.notes;"
        }
        703 => "SELECT authz.login_key('ak_unknown');",
        704 => "SELECT authz.view_as('user:2', 'ticket 17');\nUPDATE app.notes SET title = 'x';",
        705 => {
            "SELECT authz.act_as('user', '2');\nSELECT authz.share('note', 1, 'viewer', 'user', 2);  -- user 2 may not share it"
        }
        706 => "SELECT authz.share('note', 1, 'author', 'user', 2);  -- author is a column, not shared",
        707 => "SELECT authz.can('nothing', 1, 'view');",
        708 => "SELECT authz.share('note', 999999, 'viewer', 'user', 2);",
        709 => "INSERT INTO app.notes (author_id) VALUES (1);  -- signed in as user 2",
        710 => "SELECT authz.share('note', 1, 'viewer', NULL, 2);",
        711 => "DELETE FROM authz.audit;",
        712 => "SELECT authz.trim_changes();\nSELECT * FROM authz.changes_since('0');",
        713 => "UPDATE app.folders SET parent_id = id WHERE id = 1;",
        714 => "SELECT authz.act_as(NULL, NULL);\nSELECT authz.create_api_key('ci', 'read');",
        715 => {
            "SELECT authz.act_as('service', '1');\nSELECT authz.request_access('note', 1, 'viewer', 'why', '1 day');"
        }
        801 => "-- rowdeck lint, of a policy whose select rule names permissions that name many others",
        802 => {
            "ALTER SYSTEM SET max_locks_per_transaction = 10;  -- and a restart\n-- rowdeck plan, of a policy of a thousand tables"
        }
        805 => {
            "CREATE TABLE app.board_members (board_id bigint, user_id bigint);  -- no index\n-- rowdeck lint --db ..."
        }
        806 => {
            "CREATE TABLE app.board_members (board_id bigint, user_id bigint, PRIMARY KEY (board_id, user_id));  -- no REFERENCES\n-- rowdeck lint --db ..."
        }
        807 => "INSERT INTO app.team_teams (team_id, member_team_id) VALUES (1, 2), (2, 1);\n-- rowdeck lint --db ...",
        820 => "ALTER ROLE app_user BYPASSRLS;\n-- rowdeck plan",
        _ => return None,
    })
}
