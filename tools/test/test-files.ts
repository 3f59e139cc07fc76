import { existsSync, globSync, readFileSync } from "node:fs";

import { reachableModules } from "./reachable-modules.ts";

/**
 * How a test file runs. `together`: in one process with the other files of its group. `beside`: in its own process, beside others.
 * `platform`: it starts whole platforms, so few run at once. `alone`: nothing runs beside it.
 */
export type Kind = "together" | "beside" | "platform" | "alone";

export interface TestFile {
  readonly file: string;
  readonly kind: Kind;
  /** For a file that runs together with others: the group that shares its modules. */
  readonly group: string;
  /** The file's row in docs/testing.md; a usual run draws a share of all such files (draw-files.ts). Empty: the file is in every run. */
  readonly row: string;
  /** The number of lines, including those of the suites that it shares with others. */
  readonly lines: number;
}

const patterns = ["src/**/*.test.ts", "test/**/*.test.ts", "tools/**/*.test.ts"];
/** Such a line declares that nothing may run beside the file, and why. */
const declaredAlone = /^\/\/ Runs alone: \S/m;
/** Such a line declares that the file is drawn together with others of its row, and why. */
const declaredRow = /^\/\/ Drawn with other (.+?) files: \S/m;
/** A file that starts whole platforms is drawn with the row `journey`, unless such a line declares that every run needs it, and why. */
const declaredEveryRun = /^\/\/ In every run: \S/m;
const platformStarter = "test/e2e/platform.ts";
const impure =
  /^(?:node:(?:child_process|cluster|dgram|http|http2|https|net|tls|worker_threads)|fastify|nodemailer|pg|ssh2)(?:$|\/)/;
/** Code that would affect other files of the same process, or that needs its own process. */
const ownProcess =
  /\bmock\b|\bchdir\(|\bprocess\.(?:env\b|exitCode|kill|once?\()|child_process|node-process\.ts|kit\/exec\.ts/;
/** Files with servers on their own databases: loading their modules costs more than most of their tests. */
const groupedFolder = /^src\/(?:cli|features|http|reconcile|store)(?=\/)/;

/** Returns the test files whose path contains one of `only` (all if it is empty), each with how it runs. */
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

/** Returns the number of lines of a module that contains assertions, else 0. */
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
  // Tests of sandboxes take minutes, and the other files of the group would wait for them.
  const isQuick = ![...modules].some((module) => module.startsWith("src/sandbox/"));
  const group = isPure ? "pure" : isQuick ? groupedFolder.exec(file)?.[0] : undefined;
  return group === undefined || ownProcess.test(text) ? { kind: "beside", group: "" } : { kind: "together", group };
}
