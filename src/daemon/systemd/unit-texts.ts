import type { GivenSettings } from "../config.ts";
import { unitNames } from "../../kit/tenant-group.ts";

/** What the unit files depend on. */
export interface UnitPlan {
  /** `system` for root, `user` for an ordinary user's own systemd. */
  readonly scope: "system" | "user";
  /** The starter, `bin/berthd`. */
  readonly starter: string;
  readonly environmentFile: string;
  readonly dataDir: string;
  /** The PATH on which the starter finds npm, git and the machine's other tools. */
  readonly searchPath: string;
  readonly home: string;
}

/** Returns the texts of both units, by file name. */
export function unitTexts(plan: UnitPlan): Readonly<Record<string, string>> {
  return {
    [unitNames.controlPlane]: text(controlPlane(plan)),
    [unitNames.tenants]: text(tenants(plan)),
  };
}

type Section = readonly [name: string, lines: readonly string[]];

function text(sections: readonly Section[]): string {
  const written = sections.map(([name, lines]) => [`[${name}]`, ...lines].join("\n"));
  return `# Written by \`berthd service install\`; \`berthd service uninstall\` removes it.\n${written.join("\n\n")}\n`;
}

function controlPlane(plan: UnitPlan): readonly Section[] {
  const isSystem = plan.scope === "system";
  return [
    [
      "Unit",
      [
        "Description=Berth, the control plane",
        `Wants=${unitNames.tenants}${isSystem ? " network-online.target" : ""}`,
        `After=${unitNames.tenants}${isSystem ? " network-online.target" : ""}`,
        "StartLimitIntervalSec=0",
      ],
    ],
    [
      "Service",
      [
        "Type=exec",
        `ExecStart=${quoted(plan.starter)} start`,
        `Environment=${quoted(`HOME=${plan.home}`)} ${quoted(`PATH=${plan.searchPath}`)} BERTH_ON_STOP=keep`,
        `EnvironmentFile=-${escaped(plan.environmentFile)}`,
        ...(isSystem ? ["Slice=berth.slice"] : []),
        "Restart=always",
        "RestartSec=2",
        // Only the main process is killed: running git commands end by themselves, and everything else that outlives the control plane is
        // in the other unit.
        "KillMode=process",
        "TimeoutStopSec=120",
        "OOMPolicy=continue",
        "LimitNOFILE=65536:524288",
        "TasksMax=infinity",
        ...(isSystem ? hardening : []),
      ],
    ],
    ["Install", [`WantedBy=${isSystem ? "multi-user.target" : "default.target"}`]],
  ];
}

/**
 * Restrictions under which sandboxes, package managers and applications' networks still work. None of them gives the service a mount
 * namespace (ProtectSystem=, PrivateTmp=, ProtectKernelModules= …): applications' networks are mounts below /run/netns, which the next
 * start must still see. ProtectHostname= and RestrictNamespaces= are missing because every sandbox has namespaces and a host name of its
 * own.
 */
const hardening = [
  "CapabilityBoundingSet=~CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_TIME CAP_SYS_BOOT CAP_SYSLOG CAP_WAKE_ALARM CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_AUDIT_CONTROL CAP_BLOCK_SUSPEND",
  "NoNewPrivileges=yes",
  "LockPersonality=yes",
  "RestrictRealtime=yes",
  "SystemCallArchitectures=native",
  "SystemCallFilter=~@clock @module @raw-io @reboot @swap @cpu-emulation @obsolete",
  "SystemCallErrorNumber=EPERM",
  "KeyringMode=private",
];

// The shell moves itself into a leaf of the delegated group, because systemd 252 can't start it there (DelegateSubgroup= came with 254).
// cgroup v1 needs no leaf.
const keepGroup =
  'group=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup); [ ! -e "$group/cgroup.controllers" ] || { mkdir -p "$group/keeper" && echo $$ > "$group/keeper/cgroup.procs"; }; exec sleep infinity';

// Removes the folders of sockets, which are outside of the data folder; it only records their paths. Folders in use stay, because a server
// may have started meanwhile.
const removeRunFolders =
  'for note in "$0"/run-folder "$0"/*/run-folder; do [ ! -f "$note" ] || find "$(cat "$note")" -depth -type d -empty -delete; done';

function tenants(plan: UnitPlan): readonly Section[] {
  const isSystem = plan.scope === "system";
  return [
    ["Unit", ["Description=Berth, applications, edge and databases"]],
    [
      "Service",
      [
        "Type=exec",
        `ExecStart=/bin/sh -c ${quoted(keepGroup.replaceAll("$", "$$$$"))}`,
        `ExecStopPost=-/bin/sh -c ${quoted(removeRunFolders.replaceAll("$", "$$$$"))} ${quoted(plan.dataDir.replaceAll("$", "$$$$"))}`,
        ...(isSystem ? ["Slice=berth.slice"] : []),
        "Delegate=yes",
        "OOMPolicy=continue",
        "TasksMax=infinity",
        "TimeoutStopSec=60",
      ],
    ],
  ];
}

/** Quotes a word for a unit file: percent signs are doubled, quotes and backslashes escaped (systemd.syntax(7)). */
function quoted(word: string): string {
  return `"${escaped(word).replaceAll(/["\\]/g, "\\$&")}"`;
}

function escaped(word: string): string {
  return word.replaceAll("%", "%%");
}

/**
 * Returns the service's settings file. The settings given now replace those of the same names; other lines stay, because an operator may
 * have edited them. A new file also gets the standard settings.
 */
export function settingsText(kept: string | null, given: GivenSettings, standard: GivenSettings): string {
  const wanted = { ...(kept === null ? standard : {}), ...given };
  const names = Object.keys(wanted).filter((name) => name !== "PATH" && name !== "HOME");
  const isReplaced = (line: string) => names.some((name) => line.trimStart().startsWith(`${name}=`));
  const stays = (kept ?? "").split("\n").filter((line) => line !== "" && !isReplaced(line));
  // The format of systemd.exec(5): values in double quotes, with quotes and backslashes escaped.
  const lines = names.map((name) => `${name}="${(wanted[name] ?? "").replaceAll(/["\\`$]/g, "\\$&")}"`);
  return `${[...stays, ...lines].join("\n")}\n`;
}
