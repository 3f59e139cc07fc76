import { existsSync, lstatSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { SandboxBind } from "./spec.ts";

/** Descriptor numbers through which bubblewrap receives generated files. */
export interface DataDescriptors {
  readonly passwd: number;
  readonly group: number;
  readonly hosts: number;
  readonly resolv: number;
}

export interface FileSystemPlan {
  readonly binds: readonly SandboxBind[];
  readonly hide: readonly string[];
  readonly data: DataDescriptors;
  readonly tmpBytes: number;
  readonly homeBytes: number;
}

/** Returns the bubblewrap options of a sandbox's files: the system's programs, a generated /etc, private tmpfs, and the binds. */
export function fileSystemArguments(plan: FileSystemPlan): string[] {
  return [
    ...systemFolders(),
    ...plan.hide.filter(isBelowUsr).flatMap((folder) => ["--perms", "0755", "--tmpfs", folder]),
    ...etc(plan.data),
    ...["--proc", "/proc", "--dev", "/dev"],
    ...memory("/dev/shm", plan.tmpBytes),
    ...memory("/tmp", plan.tmpBytes),
    ...[...folder("/run"), ...folder("/var"), "--symlink", "../tmp", "/var/tmp", ...folder("/home")],
    ...memory("/home/app", plan.homeBytes),
    ...binds(plan.binds),
    ...["--remount-ro", "/"],
  ];
}

const isBelowUsr = (path: string): boolean => path.startsWith("/usr/") && existsSync(path);
// bubblewrap as real root creates the parents of a mount with mode 0700, so create each one explicitly.
const folder = (path: string): string[] => ["--perms", "0755", "--dir", path];
const memory = (path: string, size: number): string[] => ["--perms", "1777", "--size", String(size), "--tmpfs", path];
function systemFolders(): string[] {
  const args = ["--ro-bind", "/usr", "/usr"];
  for (const path of ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]) {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isSymbolicLink()) args.push("--symlink", readlinkSync(path), path);
    else if (found) args.push("--ro-bind", path, path);
  }
  return args;
}

/** Exposes only what programs need to find libraries, names, certificates and the time; no host keys, no passwords. */
function etc(data: DataDescriptors): string[] {
  const wanted = [
    ...[
      "ld.so.cache",
      "ld.so.conf",
      "ld.so.conf.d",
      "alternatives",
      "nsswitch.conf",
      "localtime",
      "timezone",
      "mime.types",
      "maven/m2.conf",
      "maven/logging",
    ],
    ...[
      "protocols",
      "services",
      "gai.conf",
      "host.conf",
      "ssl/certs",
      "ssl/openssl.cnf",
      "pki/tls/certs",
      "pki/tls/openssl.cnf",
      "pki/ca-trust/extracted",
    ],
  ];
  // Debian's Java and Maven link to their settings in /etc. Maven's settings.xml is left out: it may hold the operator's passwords.
  const javas = existsSync("/etc") ? readdirSync("/etc").filter((name) => /^java-\d+-openjdk$/.test(name)) : [];
  // Debian's PHP loads its extensions through these folders. php.ini is left out: it may hold passwords.
  const phps = existsSync("/etc/php") ? readdirSync("/etc/php") : [];
  const extensions = phps.flatMap((version) => [`php/${version}/mods-available`, `php/${version}/cli/conf.d`]);
  const present = [...wanted, ...javas, ...extensions].map((name) => `/etc/${name}`).filter((path) => existsSync(path));
  return [
    ...parents(present, new Set(["/"])),
    ...present.flatMap((path) => ["--ro-bind-try", path, path]),
    ...madeUp(data.passwd, "/etc/passwd"),
    ...madeUp(data.group, "/etc/group"),
    ...madeUp(data.hosts, "/etc/hosts"),
    ...madeUp(data.resolv, "/etc/resolv.conf"),
  ];
}

const madeUp = (fd: number, path: string): string[] => ["--perms", "0644", "--ro-bind-data", String(fd), path];

function binds(list: readonly SandboxBind[]): string[] {
  const made = new Set(["/", "/run", "/var", "/home", "/home/app", "/tmp", "/usr", "/etc"]);
  const args: string[] = [];
  for (const bind of list) {
    if (!isInside(bind.target, list, bind)) args.push(...parents([bind.target], made));
    args.push(bind.writable ? "--bind" : "--ro-bind", bind.source, bind.target);
  }
  return args;
}

/** Throws if the path to a target below a writable bind has a link, which code may have planted and bubblewrap would follow. */
export function refuseLinkedTargets(list: readonly SandboxBind[]): void {
  for (const { target } of list) {
    for (const other of list) {
      if (!other.writable || !target.startsWith(`${other.target}/`)) continue;
      if (leadsOverLink(other.source, target.slice(other.target.length + 1)))
        throw new Error(`a link lies on the way to ${target} in the sandbox`);
    }
  }
}

function leadsOverLink(root: string, path: string): boolean {
  const names = path.split("/");
  return names.some((_, index) =>
    lstatSync(join(root, ...names.slice(0, index + 1)), { throwIfNoEntry: false })?.isSymbolicLink(),
  );
}

/** Returns whether the target lies below /usr or another bind, where bubblewrap can't create a mount point: it must exist already. */
function isInside(target: string, list: readonly SandboxBind[], self: SandboxBind): boolean {
  return target.startsWith("/usr/") || list.some((other) => other !== self && target.startsWith(`${other.target}/`));
}

function parents(paths: readonly string[], made: Set<string>): string[] {
  const args: string[] = [];
  for (const path of paths) {
    const names = path.split("/").slice(1, -1);
    names.forEach((_, index) => {
      const parent = `/${names.slice(0, index + 1).join("/")}`;
      if (made.has(parent)) return;
      made.add(parent);
      args.push(...folder(parent));
    });
  }
  return args;
}
