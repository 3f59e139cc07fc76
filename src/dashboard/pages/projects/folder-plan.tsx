import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import type { Plan } from "../../../contract/builds.ts";
import { call, useAction, useClient, useWhyNot } from "../../data/api.ts";
import { bytes, plural, visible } from "../../data/format.ts";
import { chosenFolders } from "../../data/chosen-folders.ts";
import type { PackedFolder } from "../../data/packed-folder.ts";
import { useHasDatabase } from "../../data/use-has-database.ts";
import { Button } from "../../ui/button.tsx";
import { Checkbox } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Section, View } from "../../ui/page.tsx";
import { Fact, Mono, Plain } from "../../ui/text.tsx";
import { FailureBox } from "../builds/failure-box.tsx";
import { MissingFields, splitMissing, variablesIn } from "../env/missing.tsx";

interface FolderPlanProps {
  readonly slug: string;
  readonly folder: PackedFolder;
  readonly onLeave: () => void;
}

/** Shows what a deploy of the folder would do, asks for what is missing, and deploys it. */
export function FolderPlan({ slug, folder, onLeave }: FolderPlanProps) {
  const client = useClient();
  const plan = useQuery({
    queryKey: ["builds.plan-upload", slug, folder.packedAt],
    queryFn: ({ signal }) => call(client, "builds.plan-upload", { params: { slug }, upload: folder.archive, signal }),
    // The folder is sent once, and not again with each event.
    staleTime: "static",
  });
  return (
    <div className="max-w-[44rem] rounded-md border border-line p-5 [&>section]:mt-0">
      <Section
        title={`Plan for ${visible(folder.name)}`}
        lead={`${plural(folder.files, "file")}, ${bytes(folder.archive.size)} packed. Nothing is deployed yet.`}
        actions={<Button onClick={onLeave}>Choose another folder</Button>}
      >
        <View of={plan}>
          {(found) =>
            found.failure === null ? (
              <DeployForm slug={slug} folder={folder} plan={found} />
            ) : (
              <FailureBox failure={found.failure}>
                <p className="text-sm text-muted">Change the files, then choose the folder again.</p>
              </FailureBox>
            )
          }
        </View>
      </Section>
    </div>
  );
}

interface DeployFormProps extends Omit<FolderPlanProps, "onLeave"> {
  readonly plan: Plan;
}

function DeployForm({ slug, folder, plan }: DeployFormProps) {
  const { asked, wantsDatabase } = splitMissing(plan.missing_variables);
  const hasDatabase = useHasDatabase(slug);
  const whyNoDatabase = useWhyNot("database.create");
  const { deploy, ...state } = useDeploy({ slug, folder, plan });
  return (
    <Form {...state} submit="Deploy" why={useWhyNot("builds.upload")} onSubmit={(form) => void deploy(form)}>
      <Planned {...plan} />
      {plan.missing_variables.length > 0 && (
        <div className="flex flex-col gap-4 border-t border-line pt-4">
          <div>
            <h3 className="text-sm font-semibold">Missing</h3>
            <p className="mt-0.5 text-sm text-muted">
              Its <Mono>.env.example</Mono> names {plan.missing_variables.join(", ")}, and nothing sets{" "}
              {plan.missing_variables.length === 1 ? "it" : "them"}.
            </p>
          </div>
          {asked.length > 0 && <MissingFields names={asked} />}
        </div>
      )}
      {hasDatabase === false && (
        <Checkbox
          name="database"
          label="With a PostgreSQL database, whose address is in DATABASE_URL"
          defaultChecked={wantsDatabase && whyNoDatabase === undefined}
          disabled={whyNoDatabase !== undefined}
          title={whyNoDatabase}
        />
      )}
    </Form>
  );
}

/** Creates the database and sets the variables that the form asks for, then sends the folder and shows its build. */
function useDeploy({ slug, folder, plan }: DeployFormProps) {
  const navigate = useNavigate();
  const isUnderWay = useRef(false);
  const database = useAction("database.create");
  const env = useAction("env.import");
  const upload = useAction("builds.upload");
  const params = { slug };
  const deploy = async (form: FormData) => {
    // A second click comes before the button shows that it is busy.
    if (isUnderWay.current) return;
    isUnderWay.current = true;
    try {
      const variables = variablesIn(form, splitMissing(plan.missing_variables).asked);
      if (form.has("database")) await database.mutateAsync({ params, body: {} });
      if (Object.keys(variables).length > 0) await env.mutateAsync({ params, body: { variables } });
      const query = { message: `Upload of the folder ${folder.name}`.slice(0, 200) };
      const { build_id: id } = await upload.mutateAsync({ params, query, upload: folder.archive });
      chosenFolders.delete(slug);
      await navigate({ to: "/projects/$slug/builds/$id", params: { slug, id } });
    } catch {
      // The form shows why it failed.
    }
    isUnderWay.current = false;
  };
  return {
    deploy,
    busy: [database, env, upload].some(({ isPending }) => isPending),
    error: database.error ?? env.error ?? upload.error,
  };
}

function Planned({ root, berth_file: file, build, release_command: release, processes, crons, ...plan }: Plan) {
  const notes = [
    ...(root === "" ? [] : [`The folder ${root}`]),
    ...(file === null ? [] : [`Settings of ${file}`]),
    ...(build === null ? [] : [...build.tools, ...build.notes]),
  ];
  return (
    <dl className="grid gap-4 sm:grid-cols-2">
      {build !== null && (
        <Fact label="Detected">
          <p className="font-medium">{build.uses_dockerfile ? "A Dockerfile, which decides" : build.name}</p>
          <Lines of={notes.map((note) => ["", note])} />
        </Fact>
      )}
      {build !== null && build.steps.length > 0 && (
        <Fact label="Build">
          <Lines of={build.steps.map(({ command }) => [command, ""])} />
        </Fact>
      )}
      {release !== null && (
        <Fact label="Release command, before traffic switches">
          <Mono>{release}</Mono>
        </Fact>
      )}
      <Fact label="Processes">
        <Lines
          of={processes.map(({ type, command, because }) => [
            command === null ? type : `${type}: ${command}`,
            command === null ? "known after the build" : because === null ? "" : `because of ${because}`,
          ])}
        />
      </Fact>
      {processes.some(({ type }) => type === "web") && (
        <Fact label="Requests">
          go to {plan.port === null ? "the port in $PORT" : `port ${plan.port}`}, once{" "}
          {plan.health_path === null ? "/ answers below 500" : `${plan.health_path} answers 200 to 399`}
        </Fact>
      )}
      {crons.length > 0 && (
        <Fact label="Cron jobs">
          <Lines of={crons.map(({ name, schedule, path, command }) => [`${schedule} ${path ?? command}`, name])} />
        </Fact>
      )}
    </dl>
  );
}

/** Commands, each with a remark. */
function Lines({ of }: { readonly of: readonly (readonly [command: string, remark: string])[] }) {
  return (
    <ul>
      {of.map(([command, remark]) => (
        <li key={`${command} ${remark}`} className="break-words">
          {command !== "" && <Mono>{command}</Mono>} <Plain className="text-muted">{remark}</Plain>
        </li>
      ))}
    </ul>
  );
}
