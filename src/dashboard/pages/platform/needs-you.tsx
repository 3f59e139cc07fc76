import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { bytes, plural } from "../../data/format.ts";
import { Section } from "../../ui/page.tsx";
import { Status, Ago, Prose, type Tone } from "../../ui/text.tsx";

type Overview = Answer<"platform.overview">;
type Backup = Answer<"platform.backups">["backups"][number];
interface Need {
  readonly tone: Extract<Tone, "bad" | "warn">;
  readonly what: string;
  readonly more: ReactNode;
}

export function NeedsYou({ data }: { readonly data: Overview }) {
  const backups = useCall("platform.backups", {}).data?.backups;
  const needs = [...needsOf(data), ...(backups === undefined ? [] : needsOfBackups(backups))];
  if (needs.length === 0) return <p className="text-sm text-muted">Nothing needs you.</p>;
  return (
    <Section title="Needs you">
      <ul className="divide-y divide-line rounded-md border border-line text-sm">
        {needs
          .toSorted((one, other) => Number(one.tone !== "bad") - Number(other.tone !== "bad"))
          .map(({ tone, what, more }) => (
            <li key={what} className="flex flex-wrap items-baseline gap-x-3 gap-y-1 px-4 py-2.5">
              <Status tone={tone}>{what}</Status>
              <span className="text-muted">{more}</span>
            </li>
          ))}
      </ul>
    </Section>
  );
}

function needsOf(data: Overview): Need[] {
  const { capacity, databases, last_drills: drills, machines } = data;
  const status = (
    <Link to="/operator/status" className="underline underline-offset-2 hover:text-text">
      Status shows which need you, and what helps
    </Link>
  );
  return [
    ...(data.status === "ok"
      ? []
      : [{ tone: data.status === "fail" ? "bad" : "warn", what: "Checks", more: status } as const]),
    ...(databases.failed === 0
      ? []
      : [
          {
            tone: "bad",
            what: plural(databases.failed, "database"),
            more: "failed: the project's page of its database says why.",
          } as const,
        ]),
    ...drills
      .filter(({ status: outcome }) => outcome === "failed" || outcome === "mismatch")
      .map(({ organization, project, problem }): Need => ({
        tone: "bad",
        what: `Drill of ${organization}/${project}`,
        more: <Prose>{problem ?? "It did not restore what was stored."}</Prose>,
      })),
    ...machines.flatMap(({ name, missing }) =>
      missing.map(({ part, effect, remedy }): Need => ({
        tone: "warn",
        what: `${name}: ${part}`,
        more: `${effect} ${remedy}`,
      })),
    ),
    ...(capacity.memory_bytes.requested > capacity.memory_bytes.available
      ? [
          {
            tone: "warn",
            what: "Memory",
            more: `Replicas may use ${bytes(capacity.memory_bytes.requested)} of ${bytes(capacity.memory_bytes.available)}: when all fill theirs at once, some are ended. Add memory, or scale down.`,
          } as const,
        ]
      : []),
  ];
}

const staleMs = 2 * 86_400_000;

function needsOfBackups(backups: readonly Backup[]): Need[] {
  const [newest] = backups;
  const good = backups.find(({ status }) => status === "completed");
  if (newest?.status === "failed")
    return [{ tone: "bad", what: "Backup of the platform", more: newest.problem ?? "The newest one failed." }];
  if (good === undefined) return [{ tone: "warn", what: "Backup of the platform", more: "There is none yet." }];
  if (Date.now() - Date.parse(good.created_at) < staleMs) return [];
  return [
    {
      tone: "warn",
      what: "Backup of the platform",
      more: (
        <>
          The newest one was made <Ago at={good.created_at} />.
        </>
      ),
    },
  ];
}
