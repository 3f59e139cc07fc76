import { getRouteApi } from "@tanstack/react-router";
import { GitCompareArrows } from "lucide-react";
import type { ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useProject } from "../../data/api.ts";
import { Page, Section, Empty, View } from "../../ui/page.tsx";
import { Mono } from "../../ui/text.tsx";
import { ChangedCode } from "./changed-code.tsx";
import { CompareSides, type Chosen } from "./compare-sides.tsx";

type Comparison = Answer<"deployments.compare">;

export interface CompareSearch {
  readonly from?: number;
  readonly to?: number;
  /** The number of a build that led to no deployment, in the place of `to`. */
  readonly build?: number;
}

const route = getRouteApi("/projects/$slug/compare");

/** The page that compares two deployments: code, names of variables, settings; or a deployment with a failed build. */
export function ComparePage() {
  const { slug } = route.useParams();
  const { build, ...numbers } = route.useSearch();
  const navigate = route.useNavigate();
  const choose = (from: number, { kind, number }: Chosen) =>
    void navigate({ search: { from, [kind === "build" ? "build" : "to"]: number }, replace: true });
  return (
    <Page title="Compare deployments">
      {build === undefined ? (
        <Compared slug={slug} numbers={numbers} onChoose={choose} />
      ) : (
        <CompareBuild slug={slug} number={build} from={numbers.from} onChoose={choose} />
      )}
    </Page>
  );
}

interface ComparedProps {
  readonly slug: string;
  readonly numbers: Omit<CompareSearch, "build">;
  readonly onChoose: (from: number, to: Chosen) => void;
}

function Compared({ slug, numbers, onChoose }: ComparedProps) {
  const compared = useCall("deployments.compare", { params: { slug }, query: { ...numbers } }, { keep: true });
  return (
    <View of={compared}>
      {(data) => (
        <>
          <CompareSides
            slug={slug}
            from={{ kind: "deployment", ...data.from }}
            to={{ kind: "deployment", ...data.to }}
            onChoose={onChoose}
          />
          <Differences comparison={data} />
        </>
      )}
    </View>
  );
}

function Differences({ comparison }: { readonly comparison: Comparison }) {
  const { slug } = route.useParams();
  const { from, to, files, variables, settings } = comparison;
  const { added, removed, changed } = variables;
  const keys = added.length + removed.length + changed.length;
  if (files?.length === 0 && keys === 0 && settings.length === 0)
    return (
      <Empty icon={<GitCompareArrows size={24} />} title="Nothing differs">
        Both have the same code, the same variables and the same settings.
      </Empty>
    );
  return (
    <>
      {files?.length === 0 ? (
        <Section title="Code" lead="Both have the same code.">
          {null}
        </Section>
      ) : (
        <ChangedCode slug={slug} from={from.number} to={to.number} />
      )}
      <Section title="Variables" lead="Only their keys; values are shown nowhere.">
        <Lines none="All variables are the same.">
          {added.map((key) => (
            <Line key={key} sign="+" text={key} />
          ))}
          {removed.map((key) => (
            <Line key={key} sign="−" text={key} />
          ))}
          {changed.map((key) => (
            <Line key={key} sign="~" text={key} />
          ))}
        </Lines>
      </Section>
      <Section title="Settings">
        <Lines none="Port and health path are the same.">
          {settings.map(({ name, from, to }) => (
            <Line key={name} sign="~" text={`${name}: ${from ?? "unset"} → ${to ?? "unset"}`} />
          ))}
        </Lines>
      </Section>
    </>
  );
}

function Lines({ none, children }: { readonly none: string; readonly children: readonly ReactNode[] | ReactNode[][] }) {
  const lines = children.flat();
  if (lines.length === 0) return <p className="-mt-2.5 text-sm text-muted">{none}</p>;
  return (
    <ul className="max-h-96 overflow-y-auto rounded-md border border-line py-1.5" tabIndex={0}>
      {lines}
    </ul>
  );
}

const signs = {
  "+": ["text-ok", "added"],
  "−": ["text-bad", "removed"],
  "~": ["text-warn", "changed"],
} as const;

function Line({ sign, text }: { readonly sign: keyof typeof signs; readonly text: string }) {
  const [colour, word] = signs[sign];
  return (
    <li className="flex gap-3 px-3 py-0.5 text-sm hover:bg-panel">
      <span aria-hidden className={`font-mono ${colour}`}>
        {sign}
      </span>
      <span className="sr-only">{word}</span>
      <Mono className="min-w-0 wrap-anywhere">{text}</Mono>
    </li>
  );
}

interface CompareBuildProps {
  readonly slug: string;
  /** Of the build. */
  readonly number: number;
  /** A deployment; the one that serves if it is left out. */
  readonly from: number | undefined;
  readonly onChoose: (from: number, to: Chosen) => void;
}

/** Compares the code of a build that led to no deployment. */
function CompareBuild({ slug, number, from: given, onChoose }: CompareBuildProps) {
  const project = useProject();
  const builds = useCall("builds.list", { params: { slug } });
  const deployments = useCall("deployments.list", { params: { slug } });
  const wanted = given ?? project.data?.active_deployment?.number;
  return (
    <View of={builds}>
      {(built) => (
        <View of={deployments}>
          {(listed) => {
            const build = built.builds.find((each) => each.number === number);
            const from = listed.deployments.find((each) => each.number === wanted);
            if (build === undefined)
              return <Sentence>The hundred newest builds do not contain build {number}.</Sentence>;
            if (from === undefined)
              return <Sentence>Nothing has served yet, so there is nothing to compare build {number} with.</Sentence>;
            const message = built.builds.find(({ id }) => id === from.build_id)?.message ?? "";
            return (
              <>
                <CompareSides
                  slug={slug}
                  from={{ kind: "deployment", ...from, message }}
                  to={{ kind: "build", ...build }}
                  onChoose={onChoose}
                />
                <ChangedCode slug={slug} from={from.number} build={number} />
                <Sentence>
                  Build {number} led to no deployment, so it has no variables and settings of its own to compare.
                </Sentence>
              </>
            );
          }}
        </View>
      )}
    </View>
  );
}

function Sentence({ children }: { readonly children: ReactNode }) {
  return <p className="max-w-[80ch] text-sm text-muted">{children}</p>;
}
