import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { call, useAction, useClient } from "../../data/api.ts";
import { chosenFolders } from "../../data/chosen-folders.ts";
import { bytes, plural, visible } from "../../data/format.ts";
import type { PackedFolder } from "../../data/packed-folder.ts";
import { Button } from "../../ui/button.tsx";
import { PlanForm } from "../builds/plan-form.tsx";

interface FolderPlanProps {
  readonly slug: string;
  readonly folder: PackedFolder;
  readonly onLeave: () => void;
}

/** Shows what a deploy of the folder would do, then sends it and shows its build. */
export function FolderPlan({ slug, folder, onLeave }: FolderPlanProps) {
  const client = useClient();
  const navigate = useNavigate();
  const upload = useAction("builds.upload");
  const params = { slug };
  const plan = useQuery({
    queryKey: ["builds.plan-upload", slug, folder.packedAt],
    queryFn: ({ signal }) => call(client, "builds.plan-upload", { params, upload: folder.archive, signal }),
    // The folder is sent once, and not again with each event.
    staleTime: "static",
  });
  const deploy = async () => {
    const query = { message: `Upload of the folder ${folder.name}`.slice(0, 200) };
    const { build_id: id } = await upload.mutateAsync({ params, query, upload: folder.archive });
    chosenFolders.delete(slug);
    await navigate({ to: "/projects/$slug/builds/$id", params: { slug, id } });
  };
  return (
    <PlanForm
      slug={slug}
      of={plan}
      title={`Plan for ${visible(folder.name)}`}
      lead={`${plural(folder.files, "file")}, ${bytes(folder.archive.size)} packed. Nothing is deployed yet.`}
      actions={<Button onClick={onLeave}>Choose another folder</Button>}
      remedy="Change the files, then choose the folder again."
      row="builds.upload"
      deploy={deploy}
    />
  );
}
