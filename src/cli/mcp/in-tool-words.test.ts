import assert from "node:assert/strict";
import { test } from "node:test";
import { errors, type ErrorDefinition } from "../../contract/errors.ts";
import { inToolWords, toolCallFor } from "./in-tool-words.ts";

test("commands and routes in the platform's hints become calls of tools", () => {
  assert.equal(
    inToolWords("This needs a database: `berth db create` makes one."),
    'This needs a database: the tool database_change with {"action":"create"} makes one.',
  );
  assert.ok(!inToolWords("GET /v1/me shows the scopes of your token.").includes("GET"));
  const next = { route: "projects.undelete", method: "POST", path: "/v1/projects/demo/undelete" };
  assert.deepEqual(toolCallFor(next), { tool: "projects_change", arguments: { action: "undelete", slug: "demo" } });
  const logs = { route: "logs.list", method: "GET", path: "/v1/projects/demo/logs?limit=200" };
  assert.deepEqual(toolCallFor(logs), { tool: "logs", arguments: { action: "list", slug: "demo", limit: 200 } });
  for (const [code, definition] of Object.entries<ErrorDefinition>(errors))
    assert.doesNotMatch(inToolWords(definition.hint ?? ""), /`berth |(?:GET|POST) \//, code);
});
