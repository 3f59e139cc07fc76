import { lstatSync, mkdirSync, mkdtempSync, chmodSync, readFileSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Returns a short, stable folder for the Unix sockets of what lives in `dir`: a socket's path may have only 107 bytes (unix(7)), and other
 * users must reach sockets although `dir` is closed to them. Others may traverse it but not list it. Its random name can't be occupied
 * beforehand; the name is stored in `dir`, and a reboot leads to a new one.
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

/** Removes the run folder of `dir` once no server listens in it; the next start creates a new one. */
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
