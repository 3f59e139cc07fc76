import { homedir, hostname } from "node:os";
import { join } from "node:path";

/** What the CLI reads from the machine and the shell that started it. */
export interface Environment {
  readonly cwd: string;
  readonly home: string;
  /** What this computer is called. */
  readonly hostname: string;
  /** Whether a browser of this computer is in front of the user. */
  readonly hasBrowser: boolean;
  readonly configFile: string;
  /** The platform's data folder, if this machine runs a platform. */
  readonly dataDir: string;
  readonly defaultUrl: string;
  readonly url: string | undefined;
  readonly token: string | undefined;
  readonly project: string | undefined;
  /** The environment for programs that the CLI starts; never includes the token. */
  readonly childEnvironment: Readonly<Record<string, string>>;
  readonly plain: boolean;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

export interface GlobalOptions {
  json?: boolean;
  project?: string;
  context?: string;
  color?: boolean;
  raw?: boolean;
}

const passedToChildren = [
  "PATH",
  "HOME",
  "LANG",
  "LC_ALL",
  "XDG_CONFIG_HOME",
  "XDG_RUNTIME_DIR",
  "DISPLAY",
  "WAYLAND_DISPLAY",
  "TERM",
  "PAGER",
  "EDITOR",
  "VISUAL",
  "DBUS_SESSION_BUS_ADDRESS",
];

/** Reads the environment; nothing else in the CLI does. Empty variables count as unset. */
export function readEnvironment(variables: NodeJS.ProcessEnv = process.env): Environment {
  const read = (name: string): string | undefined => variables[name] || undefined;
  const home = read("HOME") ?? homedir();
  // GIT_DIR and similar variables select the repository, so git must see them, and berthd its settings.
  const passed = Object.keys(variables).filter(
    (name) => passedToChildren.includes(name) || /^(?:GIT_|PSQL|BERTH_(?!TOKEN$))/.test(name),
  );
  return {
    cwd: process.cwd(),
    home,
    hostname: hostname(),
    hasBrowser:
      !read("SSH_CONNECTION") && (process.platform === "darwin" || Boolean(read("DISPLAY") ?? read("WAYLAND_DISPLAY"))),
    configFile: join(read("XDG_CONFIG_HOME") ?? join(home, ".config"), "berth", "config.json"),
    dataDir: read("BERTH_DATA") ?? join(home, ".berth"),
    defaultUrl: `http://127.0.0.1:${read("BERTH_HTTP_PORT") ?? "4000"}`,
    url: read("BERTH_URL"),
    token: read("BERTH_TOKEN"),
    project: read("BERTH_PROJECT"),
    childEnvironment: Object.fromEntries(passed.map((name) => [name, variables[name] ?? ""])),
    plain: read("NO_COLOR") !== undefined || read("TERM") === "dumb",
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
  };
}
