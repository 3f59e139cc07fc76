import { globSync, readFileSync } from "node:fs";

import { reachableModules } from "./reachable-modules.ts";

/**
 * How a test file runs. `pure`: together with the other pure files in one process. `beside`: in a process of its own, beside others.
 * `platform`: it starts whole platforms, so few run at once. `alone`: nothing runs beside it.
 */
export type Kind = "pure" | "beside" | "platform" | "alone";

export interface TestFile {
  readonly file: string;
  readonly kind: Kind;
  readonly lines: number;
}

const patterns = ["src/**/*.test.ts", "test/**/*.test.ts", "tools/**/*.test.ts"];
/** A file declares with such a line that nothing may run beside it, and why. */
const declaredAlone = /^\/\/ Runs alone: \S/m;
const platformStarter = "test/e2e/platform.ts";
const impure =
  /^(?:node:(?:child_process|cluster|dgram|http|http2|https|net|tls|worker_threads)|fastify|nodemailer|pg|ssh2)(?:$|\/)/;
/** Hooks of a file would run around the tests of all files of its process. */
const sharedState =
  /import \{[^}]*\b(?:before|after|beforeEach|afterEach|mock)\b[^}]*\} from "node:test"|\.mock\b|\bchdir\(/;

/** The test files whose path contains one of `only` (all when it is empty), each with how it runs. */
export function findTestFiles(only: readonly string[]): readonly TestFile[] {
  const files = patterns.flatMap((pattern) => globSync(pattern)).toSorted();
  return files.filter((file) => only.length === 0 || only.some((part) => file.includes(part))).map(describeFile);
}

function describeFile(file: string): TestFile {
  const text = readFileSync(file, "utf8");
  return { file, kind: kindOf(file, text), lines: text.split("\n").length };
}

function kindOf(file: string, text: string): Kind {
  if (declaredAlone.test(text)) return "alone";
  const modules = reachableModules(file);
  if (modules.has(platformStarter)) return "platform";
  return sharedState.test(text) || [...modules].some((module) => impure.test(module)) ? "beside" : "pure";
}
