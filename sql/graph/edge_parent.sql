-- With the child, so that the newest sibling cluster of a parent is found first.
CREATE INDEX IF NOT EXISTS {{edge_parent_index}} ON {{edge}} (parent, child)
