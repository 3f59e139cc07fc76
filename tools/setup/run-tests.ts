import { globSync } from "node:fs";
import { relative, resolve } from "node:path";
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
  const first = await runFiles(chosen, concurrency);
  const outcome = first.failedFiles.size === 0 ? first : await repeatAlone(first);
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

/**
 * These tests start whole platforms and kill them at chosen instants; on a machine that others load, one may run out of its time. So a file
 * that failed runs once more with nothing beside it, and that counts; what needed it is named, so that nobody overlooks it.
 */
async function repeatAlone(first: Outcome): Promise<Outcome> {
  const files = [...first.failedFiles];
  console.log(`\nFAILED beside others; once more, alone:\n${files.map((file) => `  - ${file}`).join("\n")}\n`);
  const again = await runFiles(files, 1);
  const unsteady = files.filter((file) => !again.failedFiles.has(file));
  if (unsteady.length > 0) {
    console.log(`\nUNSTEADY: these failed beside others and passed alone:`);
    for (const file of unsteady) console.log(`  - ${file}`);
  }
  return { ...again, passed: first.passed + again.passed, skipped: [...new Set([...first.skipped, ...again.skipped])] };
}

interface Outcome {
  passed: number;
  failed: number;
  /** Relative to the checkout. */
  readonly failedFiles: Set<string>;
  /** What the runner itself says: hooks and files fail without a test of theirs failing. */
  isGreen: boolean;
  readonly skipped: string[];
}

async function runFiles(files: readonly string[], atOnce: number): Promise<Outcome> {
  const outcome: Outcome = { passed: 0, failed: 0, failedFiles: new Set(), isGreen: false, skipped: [] };
  const stream = run({ files: [...files], concurrency: atOnce, timeout: fileTimeoutMs });
  stream.on("test:pass", (event) => {
    if (event.details.type === "suite") return;
    const reason = skipReason(event);
    if (reason === null) outcome.passed += 1;
    else outcome.skipped.push(`${relative(process.cwd(), event.file ?? "")}: ${event.name}${reason}`);
  });
  stream.on("test:fail", (event) => {
    if (event.details.type !== "suite") outcome.failed += 1;
    const file = fileOf(event);
    if (file !== undefined) outcome.failedFiles.add(file);
  });
  stream.on("test:summary", ({ file, success }) => {
    if (file === undefined) outcome.isGreen = success;
  });
  for await (const text of stream.compose(new spec()) as AsyncIterable<string>) process.stdout.write(text);
  return outcome;
}

/** Where the failed test is; of a file that could not even be loaded the name is its path. */
function fileOf(event: EventData.TestFail): string | undefined {
  const path = event.file ?? (event.name.endsWith(".test.ts") ? event.name : undefined);
  return path === undefined ? undefined : relative(process.cwd(), resolve(path));
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
