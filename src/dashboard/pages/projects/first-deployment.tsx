import { useState } from "react";
import { firstPush } from "../../../contract/first-push.ts";
import { useRecognised, useWhyNot, type Project } from "../../data/api.ts";
import { chosenFolders } from "../../data/chosen-folders.ts";
import type { PackedFolder } from "../../data/packed-folder.ts";
import { Command } from "../../ui/button.tsx";
import { FolderDrop } from "../../ui/folder-drop.tsx";
import { FolderPlan } from "./folder-plan.tsx";

interface FirstDeploymentProps {
  readonly project: Project;
  /** Whether a push came before and led to nothing that serves. */
  readonly isAgain?: boolean;
}

/** Shows the commands for a push, or the plan of a folder. The page shows the deployment by itself once the push arrives. */
export function FirstDeployment({ project, isAgain = false }: FirstDeploymentProps) {
  const why = useWhyNot("builds.upload");
  const recognised = useRecognised();
  const { slug } = project;
  const [folder, setFolder] = useState(chosenFolders.get(slug));
  const choose = (chosen: PackedFolder | undefined) => {
    if (chosen === undefined) chosenFolders.delete(slug);
    else chosenFolders.set(slug, chosen);
    setFolder(chosen);
  };
  if (folder !== undefined) return <FolderPlan slug={slug} folder={folder} onLeave={() => choose(undefined)} />;
  return (
    <section className="flex max-w-[44rem] flex-col gap-4 rounded-md border border-line p-5">
      <div>
        <h2 className="text-base font-semibold">{isAgain ? "Push a corrected version" : "Deploy the first version"}</h2>
        <p className="mt-1 text-sm text-muted">
          {isAgain
            ? "In the repository that you pushed from; the first line is only needed in another one."
            : `In the folder of your application, a git repository with a commit. ${recognised}`}
        </p>
      </div>
      <ol className="flex flex-col gap-3">
        <Step number={1}>{`git remote add berth ${project.git.https}`}</Step>
        <Step number={2}>{firstPush}</Step>
      </ol>
      <p className="text-sm text-muted">
        git asks for a password: an API token, with any user name. After <code>berth login {location.origin}</code> and{" "}
        <code>berth link {slug}</code> it does not ask. With an SSH key the remote is{" "}
        <code className="wrap-anywhere">{project.git.ssh}</code>. This page shows the deployment as soon as the push
        arrives.
      </p>
      <FolderDrop why={why} onPacked={choose} />
    </section>
  );
}

function Step({ number, children }: { readonly number: number; readonly children: string }) {
  return (
    <li className="flex items-center gap-3">
      <span
        aria-hidden
        className="grid size-6 shrink-0 place-items-center rounded-full border border-line text-xs text-muted"
      >
        {number}
      </span>
      <div className="min-w-0 flex-1">
        <Command>{children}</Command>
      </div>
    </li>
  );
}
