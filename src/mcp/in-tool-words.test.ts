import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import type { Command } from "commander";
import { errors, type ErrorDefinition } from "../contract/errors.ts";
import { buildProgram } from "../cli/program.ts";
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

/** The commands in backquotes that sentences of the product name, with their arguments. */
function namedCommands(pattern: string): readonly string[] {
  const files = globSync(pattern).filter((file) => !/\.(?:test|suite)\./.test(file));
  return files.flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/`berth ([a-z][^`\\]*)/g)].map(([, words]) => words ?? ""),
  );
}

test("every command that a sentence of the product names exists", () => {
  const program = buildProgram({
    options: {},
    environment: { stdout: process.stdout, stderr: process.stderr },
  } as never);
  const isCommand = (within: Command, [word = "", ...rest]: readonly string[]): boolean => {
    const found = within.commands.find((each) => each.name() === word || each.aliases().includes(word));
    if (found === undefined) return false;
    const group = found.commands.length > 0 && /^[a-z][a-z-]*$/.test(rest[0] ?? "");
    return !group || isCommand(found, rest);
  };
  const unknown = namedCommands("src/**/*.{ts,tsx}").filter(
    (words) => !words.includes("${") && !isCommand(program, words.trim().split(/\s+/)),
  );
  assert.deepEqual(unknown, []);
});

test("a command in a sentence of the platform becomes a call of a tool, unless it needs a terminal or the operator's shell", () => {
  const shellOnly = /^(?:login|open|orgs rescue|machines (?:use|remove|join)|create my-app && )/;
  const left = namedCommands(
    "src/{contract,features,reconcile,http,git,building,detection,adapters,containers,ports}/**/*.ts",
  ).filter((words) => !shellOnly.test(words) && inToolWords(`\`berth ${words}\``).includes("`berth "));
  assert.deepEqual(left, []);
});
