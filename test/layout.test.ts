import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";

import { limits } from "../src/contract/limits.ts";
import { routes } from "../src/contract/routes.ts";
import { exceptions } from "../tools/check/exceptions.ts";

const root = resolve(import.meta.dirname, "..");
const nouns = [...new Set(routes.map((row) => row.name.split(".")[0] ?? ""))];

/** The file of each noun in every layer. */
const places = {
  rows: (noun: string) => `src/contract/${noun}.ts`,
  handlers: (noun: string) => `src/features/${noun}/handlers.ts`,
  command: (noun: string) => `src/cli/commands/${noun}.ts`,
  page: (noun: string) => `src/dashboard/pages/${noun}`,
};

const isUnwritten = (part: string) => `*.${part}` in exceptions.layout;

for (const [part, place] of Object.entries(places).filter(([part]) => isUnwritten(part)))
  test(`no noun has its ${part} (excepted)`, () => {
    const written = nouns.filter((noun) => existsSync(join(root, place(noun))));
    assert.deepEqual(written, [], `remove "*.${part}" from tools/check/exceptions.ts`);
  });

for (const noun of nouns) {
  for (const [part, place] of Object.entries(places).filter(([part]) => !isUnwritten(part))) {
    const key = `${noun}.${part}`;
    const isExcepted = key in exceptions.layout;
    test(`${noun} has its ${part}${isExcepted ? " (excepted)" : ""}`, () => {
      const exists = existsSync(join(root, place(noun)));
      if (isExcepted) assert.ok(!exists, `${place(noun)} exists: remove "${key}" from tools/check/exceptions.ts`);
      else assert.ok(exists, `${place(noun)} is missing: the noun ${noun} is a route of the contract`);
    });
  }
}

test("every layout exception belongs to a noun of the contract", () => {
  const known = ["*", ...nouns].flatMap((noun) => Object.keys(places).map((part) => `${noun}.${part}`));
  const unknown = Object.keys(exceptions.layout).filter((key) => !known.includes(key));
  assert.deepEqual(unknown, []);
});

test("the product's code reads every limit that the API lists", () => {
  const files = globSync("src/**/*.ts", { cwd: root }).filter((file) => !/(?:\/limits|\.test|\.suite)\.ts$/.test(file));
  const text = files.map((file) => readFileSync(join(root, file), "utf8")).join("\n");
  const unread = Object.keys(limits).filter((name) => !new RegExp(`\\b(?:apiL|l)imits\\.${name}\\b`).test(text));
  assert.deepEqual(unread, []);
});
