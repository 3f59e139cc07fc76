import assert from "node:assert/strict";
import { test } from "node:test";
import { testTree } from "../../test/support/source-tree.ts";
import { detect } from "./detect.ts";
import { goPlan } from "./go-plan.ts";
import { nodeRange } from "./node-version.ts";
import { choosePackageManager } from "./package-manager.ts";
import { parsePackageJson } from "./package-json.ts";
import { parseProcfile, wordsOf } from "./procfile.ts";
import { BuildRefused } from "./failures.ts";
import { fitsPython, pythonPlan } from "./python-plan.ts";
import { pythonStart } from "./python-start.ts";

// The detection reads at most this much of a file. A pattern with quadratic time would take minutes for it.
const atMost = 256 * 1024;
const none = { web: null, release: null, others: {} };
const many = (piece: string) => piece.repeat(atMost / piece.length);
const hostile = [
  ...["\n", " ", "\t\n", "\r", "a", "a\n", "def create_app(", "def create_app(\n\n", "x = ", "x: y\n"],
  ...["-r ", "-r requirements", "module ", "module a\n", "a/", "STATIC_ROOT ", "lockfileVersion:\n", ">=1 ", "||"],
].map(many);

test("however a text is made, deciding about it takes no time worth mentioning", { timeout: 60_000 }, () => {
  for (const text of hostile) {
    const python = testTree({ "manage.py": text, "app.py": text, "requirements.txt": text, "gunicorn.conf.py": "" });
    detect(python);
    pythonPlan({ tree: python, interpreter: "python3", version: "3.11.2", home: "/app", settings: "" });
    pythonStart(python);
    goPlan(testTree({ "go.mod": `module ${text}`, "main.go": `package main\n${text}` }), "1.24", none);
    wordsOf(text);
    assert.throws(() => parseProcfile(`web:${text}x\ry`), BuildRefused);
    choosePackageManager(parsePackageJson("{}"), testTree({ "pnpm-lock.yaml": text }));
    assert.equal(fitsPython("3.11.2", text), true);
    assert.equal(nodeRange(text) ?? "*", "*");
  }
});
