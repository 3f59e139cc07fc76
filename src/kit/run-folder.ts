import { lstatSync, mkdirSync, mkdtempSync, chmodSync, readFileSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * A short, stable folder for unix sockets of what lives in `dir`: a socket's path may have 107 bytes only (unix(7)),
 * and other users must be able to reach sockets although `dir` is closed to them. Others may pass through it, not list it.
 * The name is random, so no other process can take it beforehand; it is remembered in `dir` and made anew after a reboot.
 */
export function runFolder(dir: string, base: string = usualBase()): string {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const memory = join(dir, "run-folder");
  const known = existsSync(memory) ? readFileSync(memory, "utf8") : undefined;
  if (known?.startsWith(`${base}/`) && isOurs(known)) return known;
  const made = mkdtempSync(join(base, "berth-"));
  chmodSync(made, 0o711);
  writeFileSync(memory, made, { mode: 0o600, flush: true });
  return made;
}

/** Removes the folder of `dir` once no server listens in it; the next start makes it anew. */
export function removeRunFolder(dir: string): void {
  const memory = join(dir, "run-folder");
  if (existsSync(memory)) rmSync(readFileSync(memory, "utf8"), { recursive: true, force: true });
}

function usualBase(): string {
  return process.getuid?.() === 0 && existsSync("/run") ? "/run" : "/tmp";
}

function isOurs(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o711 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") return false;
  }
  const found = lstatSync(path);
  return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
}
