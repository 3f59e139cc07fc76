import { existsSync, globSync, readFileSync } from "node:fs";

import { reachableModules } from "./reachable-modules.ts";

/**
 * How a test file runs. `together`: in one process with the other files of its group. `beside`: in a process of its own, beside others.
 * `platform`: it starts whole platforms, so few run at once. `alone`: nothing runs beside it.
 */
export type Kind = "together" | "beside" | "platform" | "alone";

export interface TestFile {
  readonly file: string;
  readonly kind: Kind;
  /** Of a file that runs together with others: whose modules it shares. */
  readonly group: string;
  /** Of which row of docs/testing.md it is one; a usual run draws a share of all of them (draw-files.ts). Empty: it always runs. */
  readonly row: string;
  /** With those of the suites that it shares with others. */
  readonly lines: number;
}

const patterns = ["src/**/*.test.ts", "test/**/*.test.ts", "tools/**/*.test.ts"];
/** A file declares with such a line that nothing may run beside it, and why. */
const declaredAlone = /^\/\/ Runs alone: \S/m;
/** A file declares with such a line that it is one of several that show their rules in turns, and why. */
const declaredRow = /^\/\/ Drawn with other (.+?) files: \S/m;
/** A file that starts whole platforms is drawn with the journeys unless it declares with such a line that each run needs it, and why. */
const declaredEveryRun = /^\/\/ In every run: \S/m;
const platformStarter = "test/e2e/platform.ts";
const impure =
  /^(?:node:(?:child_process|cluster|dgram|http|http2|https|net|tls|worker_threads)|fastify|nodemailer|pg|ssh2)(?:$|\/)/;
/** What other files of the same process would notice, or what takes a process of its own. */
const ownProcess =
  /\bmock\b|\bchdir\(|\bprocess\.(?:env\b|exitCode|kill|once?\()|child_process|node-process\.ts|kit\/exec\.ts/;
/** Files with servers on databases of their own: loading the modules of one costs more than most of its tests. */
const groupedFolder = /^src\/(?:cli|features|http|reconcile|store)(?=\/)/;

/** The test files whose path contains one of `only` (all when it is empty), each with how it runs. */
export function findTestFiles(only: readonly string[]): readonly TestFile[] {
  const files = patterns.flatMap((pattern) => globSync(pattern)).toSorted();
  return files.filter((file) => only.length === 0 || only.some((part) => file.includes(part))).map(describeFile);
}

function describeFile(file: string): TestFile {
  const text = readFileSync(file, "utf8");
  const modules = [file, ...reachableModules(file)];
  const place = kindOf(file, text);
  const usualRow = place.kind === "platform" && !declaredEveryRun.test(text) ? "journey" : "";
  const row = declaredRow.exec(text)?.[1] ?? usualRow;
  return { file, row, ...place, lines: modules.reduce((sum, module) => sum + linesOfTests(module), 0) };
}

const counted = new Map<string, number>();

/** How long a module is that asserts something, else 0. */
function linesOfTests(module: string): number {
  if (!counted.has(module)) {
    const text = existsSync(module) ? readFileSync(module, "utf8") : "";
    counted.set(module, text.includes('"node:assert/strict"') ? text.split("\n").length : 0);
  }
  return counted.get(module) ?? 0;
}

function kindOf(file: string, text: string): Pick<TestFile, "kind" | "group"> {
  if (declaredAlone.test(text)) return { kind: "alone", group: "" };
  const modules = reachableModules(file);
  if (modules.has(platformStarter)) return { kind: "platform", group: "" };
  const isPure = ![...modules].some((module) => impure.test(module));
  // Sandboxes and the servers in them take minutes, and the other files of the group would wait for them.
  const isQuick = ![...modules].some((module) => module.startsWith("src/sandbox/"));
  const group = isPure ? "pure" : isQuick ? groupedFolder.exec(file)?.[0] : undefined;
  return group === undefined || ownProcess.test(text) ? { kind: "beside", group: "" } : { kind: "together", group };
}
