import { statSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

useCompileCache(homedir());
const { readEnvironment } = await import("./environment.ts");
const { exitCodes } = await import("./failures.ts");
const interruption = new AbortController();
const args = process.argv.slice(2);
const environment = readEnvironment();
endCleanly();
if (!(await answersGit())) {
  const { runCommandLine } = await import("./run-command-line.ts");
  process.exitCode = await runCommandLine(args, environment, interruption.signal);
}

/** Answers git's request for a password without loading the commands, because every push waits for it. Returns false for anything else. */
async function answersGit(): Promise<boolean> {
  if (args.join(" ") !== "git-credential get" || process.stdout.isTTY) return false;
  const { credentialFor } = await import("./git-credential.ts");
  const credential = await credentialFor(environment, {}).catch(() => undefined);
  if (credential !== undefined) process.stdout.write(credential);
  // The command itself reports what failed.
  return credential !== undefined;
}

/** Halves the start time. Used only if the home folder belongs to this user: anyone who can write to the cache decides what code runs here. */
function useCompileCache(home: string): void {
  if (statSync(home, { throwIfNoEntry: false })?.uid === process.getuid?.())
    enableCompileCache(join(home, ".cache/berth/compiled-code"));
}

// The first Ctrl-C lets the command stop and clean up; after a second, or at the second Ctrl-C, the process exits.
function endCleanly(): void {
  const stop = () => process.exit(exitCodes.interrupted);
  process.once("SIGINT", () => {
    process.once("SIGINT", stop);
    interruption.abort();
    setTimeout(stop, 1000).unref();
  });
  // A reader that closes the pipe early (`berth logs | head`) is not an error.
  process.stdout.on("error", (fault: NodeJS.ErrnoException) =>
    process.exit(fault.code === "EPIPE" ? exitCodes.ok : exitCodes.refused),
  );
}
