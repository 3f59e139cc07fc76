import { Link } from "@tanstack/react-router";
import { LoaderCircle } from "lucide-react";
import type { ReactNode } from "react";
import { useAction, useCall } from "../../data/api.ts";
import { shortCommit, visible } from "../../data/format.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { buttonLook } from "../../ui/button.tsx";
import { Empty, View } from "../../ui/page.tsx";
import { Mono, Plain } from "../../ui/text.tsx";
import { PlanForm } from "../builds/plan-form.tsx";

/** Shown while a followed repository has led to no build: the fetch of its first commit, then that commit's plan. The page shows the build by itself. */
export function FirstFetch({ slug }: { readonly slug: string }) {
  // A fetch that ends is not in the stream of changes.
  const followed = useCall("follow.get", { params: { slug } }, { pollMs: 3000 });
  const deploy = useAction("follow.fetch");
  const plan = { row: "follow.fetch", input: { params: { slug }, body: { deploy: false } } } as const;
  return (
    <View of={followed}>
      {({ url, branch, commit, problem }) =>
        commit !== null && problem === null && !deploy.isSuccess ? (
          <CommitPlan
            {...{ slug, url, branch, commit }}
            fetch={<ActionButton label="Fetch again" {...plan} />}
            deploy={() => deploy.mutateAsync({ params: { slug }, body: {} })}
          />
        ) : (
          <Empty
            icon={<LoaderCircle size={24} className={problem === null ? "animate-spin text-busy" : "text-faint"} />}
            title={problem !== null ? "The first commit could not be fetched" : "Fetching the first commit"}
            action={
              problem !== null && (
                <span className="flex flex-wrap gap-2">
                  <ActionButton label="Fetch now" {...plan} />
                  <Link to="/projects/$slug/settings" params={{ slug }} className={buttonLook("plain")}>
                    Access and deploy key
                  </Link>
                </span>
              )
            }
          >
            <span className="wrap-anywhere">
              <Mono>{branch}</Mono> of <Mono>{url}</Mono>.{" "}
            </span>
            {problem !== null ? (
              <Plain>{problem}</Plain>
            ) : deploy.isSuccess ? (
              "This page shows the deployment as soon as it begins."
            ) : (
              "This page shows its plan before anything is deployed."
            )}
          </Empty>
        )
      }
    </View>
  );
}

interface CommitPlanProps extends Pick<Parameters<typeof PlanForm>[0], "slug" | "deploy"> {
  readonly url: string;
  readonly branch: string;
  readonly commit: string;
  readonly fetch: ReactNode;
}

/** Shows what a deploy of the fetched commit would do. */
function CommitPlan({ url, branch, commit, fetch, ...form }: CommitPlanProps) {
  const plan = useCall("builds.plan", { params: { slug: form.slug }, body: { ref: commit } });
  return (
    <PlanForm
      of={plan}
      title={`Plan for ${visible(branch)} at ${shortCommit(commit)}`}
      lead={`${visible(url)}. Nothing is deployed yet.`}
      actions={fetch}
      remedy="Push a commit that corrects it, then fetch again."
      row="follow.fetch"
      {...form}
    />
  );
}
