import assert from "node:assert/strict";
import { test } from "node:test";
import { BuildRefused } from "../../detection/failures.ts";
import { mayStartFrom, readDockerfile, scopeArgument } from "./read-dockerfile.ts";
import { readDockerignore } from "./dockerignore.ts";

test("every stage declares the scope, and lines that BuildKit names are the original's", () => {
  const source = 'FROM a AS one\nRUN x\nfrom b \\\n  # why\n  AS two\nCOPY --from=one /x /x\nCMD ["x"]';
  const { text, originalLine } = readDockerfile(source);
  assert.deepEqual(
    text.split("\n").flatMap((line, index) => (line === `ARG ${scopeArgument}` ? [index + 1] : [])),
    [2, 7],
  );
  assert.deepEqual([1, 3, 8, 9].map(originalLine), [1, 2, 6, 7]);
});

test("what ARG names is found: with and without a value, several in a line, continued, never in a command", () => {
  const source =
    "ARG TAG=1\nFROM a:$TAG\nARG ONE TWO=2 \\\n  THREE\nRUN echo ARG FOUR\nRUN <<END\nARG FIVE\nEND\n# ARG SIX";
  assert.deepEqual(readDockerfile(source).args, ["TAG", "ONE", "TWO", "THREE"]);
});

test("Docker's own frontend is left out, another is refused by its line", () => {
  const { text, notes } = readDockerfile("# syntax=docker/dockerfile:1.7\n# escape=`\nFROM a");
  assert.doesNotMatch(text, /syntax/);
  assert.equal(notes.length, 1);
  const refused = (error: unknown) => error instanceof BuildRefused && error.code === "dockerfile_syntax_refused";
  assert.throws(() => readDockerfile("# escape=`\n# Syntax = evil.example/frontend\nFROM a"), refused);
  assert.throws(() => readDockerfile("RUN x"), /no `FROM` line/);
});

test(".dockerignore: folders with all below them, wildcards, exceptions, and the last rule decides", () => {
  const ignores = readDockerignore(
    "# why\nnode_modules\n**/*.log\n/docs/*.md\n!docs/README.md\nbuild/**\nfile?.tx[t]\n",
  );
  const paths = [
    "node_modules/a/b",
    "x/y.log",
    "y.log",
    "docs/a.md",
    "docs/README.md",
    "docs/x/a.md",
    "build/x",
    "file1.txt",
  ];
  assert.deepEqual(paths.map(ignores), [true, true, true, true, false, false, true, true]);
  assert.equal(ignores("a/node_modules"), false);
});

test("the images that a Dockerfile may start from are those it names, and all where a variable is part of a name", () => {
  const images = ["node:24", "python:3.11", "plain:latest"];
  const named = (text: string) => mayStartFrom(text, images);
  assert.deepEqual(named("FROM docker.io/library/node:24 AS a\nRUN echo $HOME"), ["node:24"]);
  assert.deepEqual(named("FROM scratch\nCOPY --from=python:3.11 /x /x"), ["python:3.11"]);
  assert.deepEqual(named("FROM plain"), ["plain:latest"]);
  assert.deepEqual(named("FROM golang:1.24"), []);
  for (const text of ["ARG V=24\nFROM node:${V}", "from \\\n  $BASE", "FROM a\nRUN --mount=type=bind,from=$BASE true"])
    assert.deepEqual(named(text), images, text);
});
