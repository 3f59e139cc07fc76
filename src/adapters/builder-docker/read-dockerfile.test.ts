import assert from "node:assert/strict";
import { test } from "node:test";
import { BuildRefused } from "../../detection/failures.ts";
import { mayStartFrom, readDockerfile } from "./read-dockerfile.ts";
import { guardMs } from "../../../test/support/eventually.ts";
import { readDockerignore } from "./dockerignore.ts";

test("what ARG names is found: with and without a value, several in a line, continued, never in a command", () => {
  const source =
    "ARG TAG=1\nFROM a:$TAG\nARG ONE TWO=2 \\\n  THREE\nRUN echo ARG FOUR\nRUN <<END\nARG FIVE\nEND\n# ARG SIX";
  assert.deepEqual(readDockerfile(source).args, ["TAG", "ONE", "TWO", "THREE"]);
});

test("heredocs are left to a frontend that reads them, and written out for one that does not", () => {
  const source = [
    ...["FROM a AS one", "RUN --mount=type=cache,target=/c <<EOF", "echo one", 'echo "two"', "EOF"],
    ...['SHELL ["/bin/bash", "-ec"]', "RUN python3 <<'PY' >/out", "FROM x", "PY"],
    ...["FROM one", "RUN <<-END", "\techo in", "\tEND", "RUN <<EOF", "#!/usr/bin/perl", "print", "EOF"],
    "RUN unknown",
  ];
  const plain = readDockerfile(source.join("\n"));
  assert.deepEqual(plain.text.split("\n"), source);
  const { text, files, originalLine } = readDockerfile(source.join("\n"), { readsHeredocs: false });
  assert.deepEqual(files, []);
  const lines = text.split("\n");
  assert.deepEqual(
    lines.filter((line) => line.startsWith("RUN")),
    [
      String.raw`RUN --mount=type=cache,target=/c ["/bin/sh","-c","echo one\necho \"two\"\n"]`,
      String.raw`RUN ["/bin/bash","-ec","python3 <<'PY' >/out\nFROM x\nPY\n"]`,
      String.raw`RUN ["/bin/bash","-ec","echo in\n"]`,
      String.raw`RUN ["/bin/bash","-ec","printf %s '#!/usr/bin/perl\nprint\n' > /tmp/berth-heredoc && chmod +x /tmp/berth-heredoc && /tmp/berth-heredoc; code=$?; rm -f /tmp/berth-heredoc; exit $code"]`,
      "RUN unknown",
    ],
  );
  assert.equal(source[originalLine(lines.indexOf("RUN unknown") + 1) - 1], "RUN unknown");
});

test("a heredoc that COPY takes becomes a file, and one with variables is refused where nothing replaces them", () => {
  const read = (text: string) => readDockerfile(`FROM a\n${text}`, { readsHeredocs: false });
  const { text, files } = read("COPY --link --chmod=600 <<'ONE' <<TWO /dir/\n$x\nONE\nplain\nTWO");
  assert.match(text, /COPY --chmod=600 \.berth-heredocs\/2-0\/ONE \.berth-heredocs\/2-1\/TWO \/dir\/$/);
  assert.deepEqual(
    files.map(({ content }) => content),
    ["$x\n", "plain\n"],
  );
  assert.throws(() => read("COPY <<EOF /x\n$HOME\nEOF"), /Line 2 .*cannot replace variables in `<<EOF`/);
  for (const other of ['RUN sh -c "cat <<EOF"', "RUN cat <<<EOF", "RUN cat <<EOF", "RUN x<<EOF"])
    assert.ok(read(`${other}\n  EOF`).text.includes(other), other);
});

test("Docker's own frontend is left out, another is refused by its line", () => {
  const { text, notes } = readDockerfile("# syntax=docker/dockerfile:1.7\n# escape=`\nFROM a");
  assert.doesNotMatch(text, /syntax/);
  assert.equal(notes.length, 1);
  const refused = (error: unknown) => error instanceof BuildRefused && error.code === "dockerfile_syntax_refused";
  assert.throws(() => readDockerfile("# escape=`\n# Syntax = evil.example/frontend\nFROM a"), refused);
  assert.throws(() => readDockerfile("RUN x"), /no `FROM` line/);
});

test("no other way that BuildKit knows names a frontend: after a line separator, a mark, `#!` or `//`, or as a variable", () => {
  const frontend = "# syntax=evil.example/frontend\nFROM a";
  for (const head of ["# x=y\u2028\n", "# x= \n", "\uFEFF\uFEFF"])
    assert.throws(() => readDockerfile(`${head}${frontend}`), /evil\.example/, JSON.stringify(head));
  assert.throws(() => readDockerfile("// syntax=evil.example/frontend\nFROM a"), BuildRefused);
  assert.doesNotMatch(readDockerfile(`#!/bin/sh\n${frontend}`).text, /^#!/);
  assert.deepEqual(readDockerfile("ARG BUILDKIT_SYNTAX\nFROM a").args, []);
});

test("only a directive at the head changes how lines are continued", () => {
  const args = (text: string) => readDockerfile(text).args;
  assert.deepEqual(args("FROM a\n# escape=`\nRUN x `\nARG ONE"), ["ONE"]);
  assert.deepEqual(args("# syntax=docker/dockerfile:1\n# escape=`\nFROM a\nRUN x `\nARG ONE"), []);
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

test("a stranger's file is read in time, whatever its words repeat", { timeout: guardMs }, () => {
  const repeated = ["RUN <<A\n", "\n", " ", "RUN from=", "from=", "ARG A=", "\\\n", "# a=", "FROM a\nRUN <<A\nA\n"];
  for (const words of repeated) {
    const text = `FROM a\nRUN ${words.repeat(200_000 / words.length)}`;
    mayStartFrom(`# a=x${words.repeat(10_000)}x\n${text}`, ["node:24"]);
    assert.ok(readDockerfile(text).args.length <= 1);
  }
  const path = `${"a".repeat(200)}/${"a/".repeat(100)}a`;
  for (const pattern of ["*a".repeat(50), "**/".repeat(50), "**/*".repeat(50), "**/**".repeat(50), "[a-z]*".repeat(50)])
    assert.equal(readDockerignore(`${pattern}b`)(path), false);
  assert.equal(readDockerignore("[z-a]")("a"), false);
  assert.throws(() => readDockerfile(`FROM a\n${"#".repeat(300_000)}`), /more than 256 KiB/);
  assert.throws(() => readDockerignore("a\n".repeat(30_000)), /more than 32 KiB/);
  const ignores = readDockerignore("*a*b", 1000);
  assert.throws(() => Array.from({ length: 100 }, () => ignores("a".repeat(100))), /takes? too long/);
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
