import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { systemPath } from "../../src/kit/exec.ts";
import type { SandboxParts } from "../../src/sandbox/spec.ts";

export function testParts(): SandboxParts {
  const find = (name: string) =>
    systemPath
      .split(":")
      .map((folder) => join(folder, name))
      .find(isProgram) ?? null;
  return {
    bwrap: find("bwrap"),
    setpriv: find("setpriv"),
    nft: find("nft"),
    ip: find("ip"),
    pasta: find("pasta"),
    socat: find("socat"),
  };
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
