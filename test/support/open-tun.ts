import { existsSync } from "node:fs";
import { systemPath, type Command } from "../../src/kit/exec.ts";

// Makes /dev/net/tun usable for every user in a new mount namespace, as on a machine that is prepared for pasta.
const openTun =
  'mount -t tmpfs -o mode=0755 tun /mnt && mknod -m 666 /mnt/tun c 10 200 && mount --bind /mnt/tun /dev/net/tun && exec "$@"';

/** The reason why tests cannot use pasta on this machine, or false. */
export const pastaLacks = ((): string | false => {
  if (process.geteuid?.() !== 0) return "tests of pasta become another user with a tun device, so they need root";
  if (!existsSync("/dev/net/tun")) return "this machine has no /dev/net/tun";
  const missing = ["pasta", "unshare", "setpriv"].find(
    (name) => !systemPath.split(":").some((folder) => existsSync(`${folder}/${name}`)),
  );
  return missing === undefined ? false : `${missing} is not installed`;
})();

/** Wraps a command of a test that root runs, so that it runs as an ordinary user on a machine where pasta works. The process keeps its pid. */
export function asUserWithTun(uid: number, command: Command): Command {
  const id = String(uid);
  const becomeUser = ["setpriv", "--reuid", id, "--regid", id, "--clear-groups", "--"];
  return {
    file: "unshare",
    args: ["--mount", "--", "/bin/sh", "-c", openTun, "sh", ...becomeUser, command.file, ...command.args],
  };
}
