import type { ReactNode } from "react";
import { useCall, useProject } from "../../data/api.ts";
import { View } from "../../ui/page.tsx";
import { ChangedCode } from "./changed-code.tsx";
import { CompareSides, type Chosen } from "./compare-sides.tsx";

interface CompareBuildProps {
  readonly slug: string;
  /** Of the build. */
  readonly number: number;
  /** A deployment; the one that serves if it is left out. */
  readonly from: number | undefined;
  readonly onChoose: (from: number, to: Chosen) => void;
}

/** Compares the code of a build that led to no deployment. */
export function CompareBuild({ slug, number, from: given, onChoose }: CompareBuildProps) {
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
