import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Answer } from "../../contract/client.ts";
import { entryKinds } from "../../contract/activity.ts";
import { capitalized } from "../data/format.ts";
import { moveInRows } from "../data/move-in-rows.ts";
import { Select } from "./field.tsx";
import { Older, Newer, useHeld } from "./table.tsx";
import { Dot, Tag, Ago, Dated, Plain, type Tone } from "./text.tsx";
import { Empty, View } from "./page.tsx";

export type Entry = Answer<"activity.list">["activity"][number];
export type EntryKind = (typeof entryKinds)[number];

export interface EntriesSearch {
  readonly kind?: EntryKind;
}

interface EntriesProps {
  readonly queryKey: readonly unknown[];
  readonly read: (
    cursor: string | undefined,
    signal: AbortSignal,
  ) => Promise<{ readonly entries: readonly Entry[]; readonly next: string | null }>;
  readonly kind: EntryKind | undefined;
  readonly onKind: (kind: EntryKind | undefined) => void;
  readonly empty: string;
  /** The list covers several projects, so each entry names its own. */
  readonly namesProjects?: boolean;
}

const wordOf = (kind: EntryKind) => (kind === "env" ? "variables" : kind);

/** A list of events, newest first, grouped by day. */
export function Entries({ queryKey, read, kind, onKind, empty, namesProjects = false }: EntriesProps) {
  const pages = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const { rows: entries, held } = useHeld(pages.data?.pages.flatMap((page) => page.entries) ?? [], ({ id }) => id);
  return (
    <>
      <div className="w-48">
        <Select
          aria-label="Kind"
          value={kind ?? ""}
          onChange={(event) => onKind(event.target.value === "" ? undefined : (event.target.value as EntryKind))}
        >
          <option value="">Everything</option>
          {entryKinds.map((each) => (
            <option key={each} value={each}>
              {capitalized(wordOf(each))}
            </option>
          ))}
        </Select>
      </div>
      <View of={pages}>
        {() => (
          <>
            <Newer count={held} />
            {entries.length === 0 && <Empty title={empty} />}
            {daysOf(entries).map(({ day, entries: own }) => (
              <section key={day} className="flex flex-col gap-2">
                <h2 className="text-xs font-medium text-faint">{day}</h2>
                <EntryList entries={own} namesProjects={namesProjects} />
              </section>
            ))}
            <Older of={[pages]} />
          </>
        )}
      </View>
    </>
  );
}

interface EntryListProps {
  readonly entries: readonly Entry[];
  readonly namesProjects?: boolean;
}

export function EntryList({ entries, namesProjects = false }: EntryListProps) {
  return (
    <ol onKeyDown={moveInRows} className="divide-y divide-line rounded-md border border-line">
      {entries.map((entry) => (
        <EntryRow key={entry.id} entry={entry} namesProject={namesProjects} />
      ))}
    </ol>
  );
}

const dayFormat = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });

function daysOf(entries: readonly Entry[]): { day: string; entries: Entry[] }[] {
  const days = new Map<string, Entry[]>();
  for (const entry of entries) {
    const day = dayFormat.format(new Date(entry.at));
    days.set(day, [...(days.get(day) ?? []), entry]);
  }
  return [...days].map(([day, own]) => ({ day, entries: own }));
}

function EntryRow({ entry, namesProject }: { readonly entry: Entry; readonly namesProject: boolean }) {
  return (
    <li className="flex min-h-9 items-center gap-3 px-3 py-1.5 text-sm">
      <Dot tone={toneOf(entry.action)} />
      <span className="min-w-0 flex-1 break-words">
        <Summary of={entry} />
        {namesProject && entry.project !== null && !entry.summary.endsWith(` ${entry.project}`) && (
          <Link
            to="/projects/$slug/timeline"
            params={{ slug: entry.project }}
            className="ml-2 text-faint underline decoration-line underline-offset-2 hover:text-accent"
          >
            {entry.project}
          </Link>
        )}
        <span className="block text-xs text-faint lg:hidden">
          by <Actor of={entry.actor} />
        </span>
      </span>
      <span className="w-36 shrink-0 truncate text-muted max-lg:hidden">
        <Actor of={entry.actor} />
      </span>
      <span className="w-24 shrink-0 max-lg:hidden">
        <Tag>{wordOf(entry.kind)}</Tag>
      </span>
      <Ago at={entry.at} className="w-20 shrink-0 text-right text-muted" />
    </li>
  );
}

/** Shows what happened, as a link to the page that shows more of it. */
function Summary({ of: { summary, project, link } }: { readonly of: Entry }) {
  const [, build] = /^\/v1\/builds\/(\w+)$/.exec(link ?? "") ?? [];
  const [, part = ""] = /^\/v1\/projects\/[^/]+\/(.+)$/.exec(link ?? "") ?? [];
  const tab = tabs[part as keyof typeof tabs];
  const look = "hover:text-accent hover:underline";
  if (project !== null && build !== undefined)
    return (
      <Link to="/projects/$slug/builds/$id" params={{ slug: project, id: build }} className={look}>
        <Dated>{summary}</Dated>
      </Link>
    );
  if (project === null || tab === undefined) return <Dated>{summary}</Dated>;
  return (
    <Link to={tab} params={{ slug: project }} className={look}>
      <Dated>{summary}</Dated>
    </Link>
  );
}

/** A project's pages by the API path that an entry links to. */
const tabs = {
  deployments: "/projects/$slug/deployments",
  logs: "/projects/$slug/logs",
  env: "/projects/$slug/variables",
  domains: "/projects/$slug/domains",
  cron: "/projects/$slug/cron",
  database: "/projects/$slug/database",
  "data/tables": "/projects/$slug/database",
  backups: "/projects/$slug/backups",
} as const;

function Actor({ of: { type, name } }: { readonly of: Entry["actor"] }) {
  return type === "platform" ? "the platform" : <Plain>{name}</Plain>;
}

function toneOf(action: string): Tone {
  if (/fail|crash|memory|lost|denied/.test(action)) return "bad";
  if (/delet|removed|detach|disabl|purg|cancel|drop/.test(action)) return "warn";
  if (/activated|served|completed|verified|enabled|approved/.test(action)) return "ok";
  return "off";
}
