import { useNavigate, useParams } from "@tanstack/react-router";
import type { RouteName } from "../../contract/routes.ts";
import { useCall } from "../data/api.ts";
import { useMe, whyNot } from "../data/me.ts";
import { signOut } from "../data/session.ts";
import { setTheme } from "../data/theme.ts";
import { globalActions, projectActions, type Asked } from "./actions.ts";
import { matchRank, projectTabs, sections } from "./places.ts";

export interface Item {
  readonly label: string;
  /** What kind it is, or why it cannot be chosen. */
  readonly hint: string;
  readonly isOff?: boolean;
  readonly go: () => void;
}

const mostShown = 50;

/** What the palette finds for a text: nearest first, and of the project that is looked at before others. */
export function usePaletteItems(text: string, onAsk: (asked: Asked) => void): readonly Item[] {
  const places = usePlaces();
  const actions = useActions(onAsk);
  return [...actions.here, ...places, ...actions.elsewhere]
    .map((item) => ({ ...item, rank: matchRank(`${item.label} ${item.hint}`, text) }))
    .filter(({ rank }) => rank > 0)
    .toSorted((a, b) => b.rank - a.rank)
    .slice(0, mostShown);
}

function usePlaces(): readonly Item[] {
  const navigate = useNavigate();
  const me = useMe();
  const { data } = useCall("overview.get", {});
  const pages = sections.filter((section) => section.operator !== true || me.platform_admin);
  const slugs = data?.projects.map(({ slug }) => slug) ?? [];
  return [
    ...slugs.map((slug) => ({
      label: slug,
      hint: "Project",
      go: () => void navigate({ to: "/projects/$slug", params: { slug } }),
    })),
    ...pages.map(({ to, label }) => ({ label, hint: "Page", go: () => void navigate({ to }) })),
    ...slugs.flatMap((slug) =>
      projectTabs.slice(1).map(([to, label]) => ({
        label: `${slug}: ${label}`,
        hint: "Project page",
        go: () => void navigate({ to, params: { slug } }),
      })),
    ),
  ];
}

function useActions(onAsk: (asked: Asked) => void) {
  const me = useMe();
  const { data } = useCall("overview.get", {});
  const { slug: here } = useParams({ strict: false });
  const itemOf = (label: string, row: RouteName, asked: Asked): Item => {
    const why = whyNot(me, row);
    return { label, hint: why ?? "Action", isOff: why !== undefined, go: () => onAsk(asked) };
  };
  const ofProject = (slug: string) =>
    entriesOf(projectActions).map(([kind, [label, row]]) => itemOf(`${slug}: ${label}`, row, { kind, slug }));
  const ofAll = entriesOf(globalActions)
    .filter(([kind]) => kind !== "org" || me.platform_admin)
    .map(([kind, [label, row]]) => itemOf(label, row, { kind }));
  const others = data?.projects.filter(({ slug, state }) => slug !== here && state !== "deleted") ?? [];
  return {
    here: here === undefined ? [] : ofProject(here),
    elsewhere: [
      ...ofAll,
      ...others.flatMap(({ slug }) => ofProject(slug)),
      ...(["light", "dark", "system"] as const).map((theme) => ({
        label: `Theme: ${theme}`,
        hint: "Action",
        go: () => setTheme(theme),
      })),
      { label: "Sign out", hint: "Action", go: () => void signOut() },
    ],
  };
}

function entriesOf<T extends Record<string, readonly [string, RouteName]>>(table: T) {
  return Object.entries(table) as [keyof T & string, readonly [string, RouteName]][];
}
