-- The docs example: organisations, teams inside teams, folders inside folders, files.
CREATE SCHEMA app;

CREATE TABLE app.users (
  id bigint PRIMARY KEY,
  name text NOT NULL,
  active boolean NOT NULL DEFAULT true
);

CREATE TABLE app.orgs (
  id bigint PRIMARY KEY,
  name text NOT NULL
);

CREATE TABLE app.org_admins (
  org_id bigint NOT NULL REFERENCES app.orgs ON DELETE CASCADE,
  user_id bigint NOT NULL REFERENCES app.users ON DELETE CASCADE,
  PRIMARY KEY (user_id, org_id)
);
CREATE INDEX ON app.org_admins (org_id);

CREATE TABLE app.teams (
  id bigint PRIMARY KEY,
  org_id bigint NOT NULL REFERENCES app.orgs ON DELETE CASCADE,
  name text NOT NULL
);
CREATE INDEX ON app.teams (org_id);

CREATE TABLE app.team_members (
  team_id bigint NOT NULL REFERENCES app.teams ON DELETE CASCADE,
  user_id bigint NOT NULL REFERENCES app.users ON DELETE CASCADE,
  PRIMARY KEY (user_id, team_id)
);
CREATE INDEX ON app.team_members (team_id);

-- Members of member_team are members of team.
CREATE TABLE app.team_teams (
  team_id bigint NOT NULL REFERENCES app.teams ON DELETE CASCADE,
  member_team_id bigint NOT NULL REFERENCES app.teams ON DELETE CASCADE,
  PRIMARY KEY (member_team_id, team_id)
);
CREATE INDEX ON app.team_teams (team_id);

CREATE TABLE app.folders (
  id bigint PRIMARY KEY,
  org_id bigint NOT NULL REFERENCES app.orgs ON DELETE CASCADE,
  parent_id bigint REFERENCES app.folders ON DELETE CASCADE,
  owner_id bigint NOT NULL REFERENCES app.users,
  name text NOT NULL,
  inherit boolean NOT NULL DEFAULT true
);
CREATE INDEX ON app.folders (org_id);
CREATE INDEX ON app.folders (parent_id);
CREATE INDEX ON app.folders (owner_id);

-- A folder also shown inside another folder, for reading only.
CREATE TABLE app.folder_links (
  folder_id bigint NOT NULL REFERENCES app.folders ON DELETE CASCADE,
  shown_in bigint NOT NULL REFERENCES app.folders ON DELETE CASCADE,
  PRIMARY KEY (folder_id, shown_in)
);
CREATE INDEX ON app.folder_links (shown_in);

-- Folders a team works in.
CREATE TABLE app.folder_teams (
  folder_id bigint NOT NULL REFERENCES app.folders ON DELETE CASCADE,
  team_id bigint NOT NULL REFERENCES app.teams ON DELETE CASCADE,
  PRIMARY KEY (folder_id, team_id)
);
CREATE INDEX ON app.folder_teams (team_id, folder_id);

CREATE TABLE app.files (
  id bigint PRIMARY KEY,
  folder_id bigint NOT NULL REFERENCES app.folders ON DELETE CASCADE,
  owner_id bigint NOT NULL REFERENCES app.users,
  name text NOT NULL,
  confidential boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON app.files (folder_id);
CREATE INDEX ON app.files (owner_id);
CREATE INDEX ON app.files (created_at DESC, id DESC);
