import { globSync } from "node:fs";
import { relative } from "node:path";
import { run, type EventData } from "node:test";
import { spec } from "node:test/reporters";

import { run as runProgram } from "../../src/kit/exec.ts";

const patterns = ["src/**/*.test.ts", "test/**/*.test.ts", "tools/**/*.test.ts"];
const concurrency = 2;
/** A file that hangs is ended and counts as failed. */
const fileTimeoutMs = 10 * 60 * 1000;

/** Runs the checks, then the tests whose files match the arguments (all without any), and says what was skipped and why. */
async function runAll(only: readonly string[]): Promise<boolean> {
  const checksAreGreen = only.length > 0 || (await runChecks());
  const files = patterns.flatMap((pattern) => globSync(pattern)).toSorted();
  const chosen = files.filter((file) => only.length === 0 || only.some((part) => file.includes(part)));
  const outcome = await runFiles(chosen);
  printSkipped(outcome.skipped);
  if (!checksAreGreen) console.log("\nThe checks are RED: see the top of this output, or run npm run check.");
  console.log(`\n${outcome.passed} passed, ${outcome.failed} failed, ${outcome.skipped.length} skipped`);
  return checksAreGreen && outcome.isGreen && outcome.passed > 0;
}

async function runChecks(): Promise<boolean> {
  const env = process.env as Record<string, string>;
  const print = (chunk: Buffer) => process.stdout.write(chunk);
  const command = { file: process.execPath, args: ["tools/check/main.ts"] };
  const result = await runProgram(command, { cwd: process.cwd(), env, onStdout: print, onStderr: print });
  return result.exitCode === 0;
}

interface Outcome {
  passed: number;
  failed: number;
  /** What the runner itself says: hooks and files fail without a test of theirs failing. */
  isGreen: boolean;
  readonly skipped: string[];
}

async function runFiles(files: readonly string[]): Promise<Outcome> {
  const outcome: Outcome = { passed: 0, failed: 0, isGreen: false, skipped: [] };
  const stream = run({ files: [...files], concurrency, timeout: fileTimeoutMs });
  stream.on("test:pass", (event) => {
    if (event.details.type === "suite") return;
    const reason = skipReason(event);
    if (reason === null) outcome.passed += 1;
    else outcome.skipped.push(`${relative(process.cwd(), event.file ?? "")}: ${event.name}${reason}`);
  });
  stream.on("test:fail", (event) => {
    if (event.details.type !== "suite") outcome.failed += 1;
  });
  stream.on("test:summary", ({ file, success }) => {
    if (file === undefined) outcome.isGreen = success;
  });
  for await (const text of stream.compose(new spec()) as AsyncIterable<string>) process.stdout.write(text);
  return outcome;
}

function skipReason(event: EventData.TestPass): string | null {
  const { skip, todo } = event;
  if (skip === undefined && todo === undefined) return null;
  const reason = skip ?? todo;
  return typeof reason === "string" && reason !== "" ? ` (${reason})` : "";
}

function printSkipped(skipped: readonly string[]): void {
  if (skipped.length === 0) return;
  console.log(`\nSKIPPED: ${skipped.length} tests did NOT run here:`);
  for (const line of skipped) console.log(`  - ${line}`);
}

if (!(await runAll(process.argv.slice(2)))) process.exitCode = 1;
