import type { Result } from "../../contract/routes.ts";
import type { ReleaseReport, WantedUpgrade } from "../../ports/releases.ts";
import { readVersion } from "../../kit/own-version.ts";
import type { Context, HandlerPlatform, Waiting } from "../context.ts";

type Versions = Result<"platform.versions">;

/** Returns what is installed, and the newest upgrade. */
export async function showVersions({ releases }: Pick<HandlerPlatform, "releases">): Promise<Versions> {
  const { installed, unfinalized, upgrade } = await releases.report();
  return {
    ...readVersion(),
    newer: releases.newer(),
    installed: [...installed],
    unfinalized: [...unfinalized],
    upgrade: upgrade === null ? null : present(upgrade),
  };
}

const outcomes = { done: "done", failed: "failed", back: "went_back" } as const;

function present({ from, to, steps }: NonNullable<ReleaseReport["upgrade"]>): Versions["upgrade"] {
  const last = steps.at(-1);
  const status = outcomes[last?.step as keyof typeof outcomes] ?? "in_progress";
  return { from, to, status, reason: last?.reason ?? null, steps: steps.map(({ step, at }) => ({ step, at })) };
}

/** Begins an upgrade after the request's transaction; it goes on in a process of its own. */
export async function upgradePlatform(
  ctx: Context<"platform.upgrade">,
  wanted: WantedUpgrade,
): Promise<Waiting<Versions>> {
  const { installed } = await ctx.platform.releases.report();
  if (installed.length === 0) return ctx.fail("conflict", fromClone);
  const { source, without_backup } = wanted;
  const target = `${source ?? "the newest version"}${without_backup ? " without a backup" : ""}`;
  ctx.note({ target, detail: { without_backup } });
  const outcome = async () => {
    if ((await ctx.platform.releases.upgrade(wanted)) === "under_way") return ctx.fail("conflict", underWay);
    return showVersions(ctx.platform);
  };
  return { changesLate: true, outcome };
}

export async function finalizePlatform(ctx: Context<"platform.finalize">): Promise<Waiting<Versions>> {
  ctx.note({ target: readVersion().version });
  const outcome = async () => {
    if ((await ctx.platform.releases.finalize()) === "under_way") return ctx.fail("conflict", underWay);
    return showVersions(ctx.platform);
  };
  return { changesLate: true, outcome };
}

const fromClone = {
  error: "The platform runs from a clone, not from an installed release.",
  hint: "Run `git pull` there and start it again: the start copies the database and tries the migrations first. `install.sh` installs releases.",
};

const underWay = {
  error: "Another upgrade is under way.",
  hint: "`berth platform versions` shows its steps. It ends by itself.",
};
