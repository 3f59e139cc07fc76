import { useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { firstPush } from "../../../contract/first-push.ts";
import { call, useClient, useRecognised, useWhyNot } from "../../data/api.ts";
import { slugOf } from "../../data/format.ts";
import { chosenFolders } from "../../data/chosen-folders.ts";
import type { PackedFolder } from "../../data/packed-folder.ts";
import { Command, DialogButton } from "../../ui/button.tsx";
import { FolderDrop } from "../../ui/folder-drop.tsx";
import { CreateProject } from "../projects/create-project.tsx";

/** Shown instead of the overview while there is no project: three ways to the first deployment. */
export function FirstProject() {
  const client = useClient();
  const why = useWhyNot("projects.create");
  const navigate = useNavigate();
  const planIn = async (folder: PackedFolder) => {
    const slug = slugOf(folder.name) || "app";
    await call(client, "projects.create", { body: { slug, name: folder.name.slice(0, 100) } });
    chosenFolders.set(slug, folder);
    return navigate({ to: "/projects/$slug", params: { slug } });
  };
  return (
    <section className="flex max-w-[44rem] flex-col gap-6 rounded-md border border-line p-6">
      <div>
        <h2 className="text-lg font-semibold">Deploy your first application</h2>
        <p className="mt-1 max-w-[64ch] text-sm text-muted">
          A project is an application with its repository, address, database and history. {useRecognised()}
        </p>
      </div>
      <FolderDrop why={why} onPacked={planIn} />
      <div className="flex flex-col gap-2">
        <h3 className="text-sm font-medium">Or from a terminal, in a git repository with a commit</h3>
        <Command>{`berth login ${location.origin}`}</Command>
        <Command>{"berth create my-app"}</Command>
        <Command>{firstPush}</Command>
        <p className="max-w-[64ch] text-sm text-muted">
          <code>berth</code> comes with Berth, and{" "}
          <a href="/docs/cli" className="text-accent underline underline-offset-2">
            to other machines by the same installer
          </a>
          . The login asks for an API token; the second command adds the git remote that the third one pushes to.
        </p>
      </div>
      <div className="flex flex-wrap items-center gap-3 border-t border-line pt-4 text-sm text-muted">
        <DialogButton icon={<Plus size={15} />} row="projects.create" dialog={<CreateProject />}>
          Template or repository
        </DialogButton>
        From a template, from a repository on GitHub or elsewhere, or empty, to set its variables and database first.
      </div>
    </section>
  );
}
