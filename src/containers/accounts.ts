/** The user accounts that an image's instances see. */
export interface Accounts {
  /** The text of /etc/passwd. */
  readonly passwd: string;
  /** Group of the image's USER, whose files the application may read as that user could. Null if there is no such group or it is root's. */
  readonly group: number | null;
}

/**
 * Adds the project's user to the image's `passwd`, under the name in USER, else as `app`. Without a name for its uid, `whoami`, Node's
 * `os.userInfo()` and Python's `getpass.getuser()` fail.
 */
export function accountsOf(passwd: string, user: string, uid: number): Accounts {
  const lines = passwd.split("\n").filter((line) => line.split(":").length >= 7);
  const [who = "", group = ""] = user.split(":");
  const fields = lines.map((line) => line.split(":")).find(([name, , number]) => name === who || number === who);
  const isRoot = who === "" || who === "0" || fields?.[2] === "0";
  const name = isRoot ? "app" : (fields?.[0] ?? (/^\d+$/.test(who) ? "app" : who));
  const gid = /^\d+$/.test(group) ? Number(group) : Number(fields?.[3] ?? 0);
  const own = [name, "x", uid, uid, "", "/home/app", fields?.[6] || "/bin/sh"].join(":");
  const others = lines.filter((line) => !line.startsWith(`${name}:`));
  return { passwd: `${[...others, own].join("\n")}\n`, group: isRoot || gid === 0 ? null : gid };
}
