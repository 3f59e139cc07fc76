import { PanelTop, Zap } from "lucide-react";
import { useNavigate, useParams, useRouterState } from "@tanstack/react-router";
import { route, type RouteName } from "../../contract/routes.ts";
import { useCall, useMe, whyNot } from "../data/api.ts";
import { compareNames } from "../data/format.ts";
import { signOut } from "../data/session.ts";
import { setTheme } from "../data/theme.ts";
import { globalActions, projectActions, type Asked } from "./actions.ts";
import type { Tone } from "../ui/text.tsx";
import type { PaletteScope } from "./open-palette.ts";
import { matchRank, projectTabs, sections } from "./places.ts";
import { standOf, type OverviewProject } from "./stand.ts";

export interface Item {
  readonly label: string;
  /** The kind of item, or why it can't be chosen. */
  readonly hint: string;
  readonly isOff?: boolean;
  readonly tone?: Tone;
  readonly icon?: typeof Zap;
  /** The keys that lead there without the palette. */
  readonly keys?: string;
  readonly go: () => void;
}

const mostShown = 50;
const projectHint = "Project";

// With more projects than this, the palette offers pages and actions only for those whose slug contains the first typed word.
const mostExpanded = 40;

interface Wanted {
  readonly scope: PaletteScope;
  readonly text: string;
  readonly onAsk: (asked: Asked) => void;
}

/** Returns what the palette finds for a text: best matches first; among equals, actions on the current project first. */
export function usePaletteItems({ scope, text, onAsk }: Wanted): readonly Item[] {
  const { data } = useCall("overview.get", {});
  const projects = [...(data?.projects ?? []), ...(data?.previews ?? [])]
    .filter(({ state }) => state !== "deleted")
    .toSorted((a, b) => compareNames(a.slug, b.slug));
  const slugs = projects.map(({ slug }) => slug);
  const [begin = ""] = text.trim().toLowerCase().split(/[\s:]/, 1);
  const expanded =
    slugs.length <= mostExpanded
      ? slugs
      : slugs.filter((slug) => begin !== "" && slug.includes(begin)).slice(0, mostExpanded);
  const ofProjects = useProjects(projects, scope);
  const places = usePlaces(expanded);
  const actions = useActions(projects, expanded, onAsk);
  const found = {
    all: [...actions.here, ...ofProjects, ...places, ...actions.elsewhere],
    projects: ofProjects,
    actions: actions.here.map((item) => ({ ...item, label: item.label.replace(/^[^:]+: /, "") })),
  };
  return found[scope]
    .map((item) => ({ ...item, rank: rankOf(item, text) }))
    .filter(({ rank }) => rank > 0)
    .toSorted((a, b) => b.rank - a.rank)
    .slice(0, mostShown);
}

/** Ranks a project whose name begins with the text before its pages and actions. */
function rankOf({ label, hint }: Item, text: string): number {
  const wanted = text.trim().toLowerCase();
  const isNamed = hint === projectHint && wanted !== "" && label.startsWith(wanted);
  return isNamed ? 3 : matchRank(`${label} ${hint}`, text);
}

/** Choosing another project keeps the tab; finding one among everything leads to its overview. */
function useProjects(projects: readonly OverviewProject[], scope: PaletteScope): readonly Item[] {
  const navigate = useNavigate();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const tab = projectTabs.find(([to]) => to.split("/")[3] === path.split("/")[3]);
  const to = scope === "projects" && tab !== undefined ? tab[0] : "/projects/$slug";
  return projects.map((project) => {
    const { tone, word } = standOf(project);
    const { slug } = project;
    const hint = scope === "projects" ? word : projectHint;
    return { label: slug, hint, tone, go: () => void navigate({ to, params: { slug } }) };
  });
}

const compare = ["/projects/$slug/compare", "Compare deployments", ""] as const;

function usePlaces(expanded: readonly string[]): readonly Item[] {
  const navigate = useNavigate();
  const { slug: here } = useParams({ strict: false });
  const me = useMe();
  const pages = sections.filter((section) => section.operator !== true || me.platform_admin);
  return [
    ...pages.map(({ to, label, icon, key }) => ({
      ...{ label, hint: "Page", icon, keys: `g ${key}` },
      go: () => void navigate({ to }),
    })),
    { label: "Session, usage and limits", hint: "Page", icon: PanelTop, go: () => void navigate({ to: "/account" }) },
    ...expanded.flatMap((slug) =>
      [...projectTabs.slice(1), compare].map(([to, label, key]) => ({
        ...{ label: `${slug}: ${label}`, hint: "Project page", icon: PanelTop },
        ...(slug === here && key !== "" ? { keys: `g ${key}` } : {}),
        go: () => void navigate({ to, params: { slug } }),
      })),
    ),
  ];
}

function useActions(living: readonly OverviewProject[], expanded: readonly string[], onAsk: (asked: Asked) => void) {
  const me = useMe();
  const bySlug = new Map(living.map((project) => [project.slug, project]));
  const { slug: here } = useParams({ strict: false });
  const itemOf = (label: string, row: RouteName, asked: Asked): Item => {
    const why = whyNot(me, row);
    return { label, hint: why ?? "Action", icon: Zap, isOff: why !== undefined, go: () => onAsk(asked) };
  };
  const ofProject = (slug: string) =>
    entriesOf(projectActions)
      .filter(([kind]) => (bySlug.has(slug) ? kind !== "undelete" : kind === "undelete" || kind === "delete"))
      .filter(([kind]) => kind !== "rollback" || (bySlug.get(slug)?.active_deployment?.number ?? 0) > 1)
      .filter(([, [, row]]) => me.platform_admin || route(row).access !== "operator")
      .map(([kind, [label, row, tab]]) => itemOf(`${slug}: ${label}`, row, { kind, slug, tab }));
  const ofAll = entriesOf(globalActions)
    .filter(([kind]) => kind !== "org" || me.platform_admin)
    .map(([kind, [label, row]]) => itemOf(label, row, { kind }));
  return {
    here: here === undefined ? [] : ofProject(here),
    elsewhere: [
      ...ofAll,
      ...expanded.filter((slug) => slug !== here).flatMap(ofProject),
      ...(["light", "dark", "system"] as const).map((theme) => ({
        ...{ label: `Theme: ${theme}`, hint: "Action", icon: Zap },
        go: () => setTheme(theme),
      })),
      ...(matchMedia("(pointer: coarse)").matches ? [] : [keys]),
      { label: "Sign out", hint: "Action", icon: Zap, go: () => void signOut() },
    ],
  };
}

const keys: Item = {
  label: "Keys",
  hint: "Action",
  icon: Zap,
  keys: "?",
  go: () => dispatchEvent(new Event("berth-keys")),
};

function entriesOf<K extends string, A>(table: Readonly<Record<K, A>>) {
  return Object.entries(table) as [K, A][];
}
