import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Plan } from "../../../contract/builds.ts";
import { useAction, useWhyNot } from "../../data/api.ts";
import { useHasDatabase } from "../../data/use-has-database.ts";
import { Checkbox } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Section, View } from "../../ui/page.tsx";
import { Fact, Mono, Prose } from "../../ui/text.tsx";
import { MissingFields, splitMissing, variablesIn } from "../env/missing.tsx";
import { FailureBox } from "./failure-box.tsx";

interface PlanFormProps {
  readonly slug: string;
  readonly of: UseQueryResult<Plan>;
  readonly title: string;
  readonly lead: string;
  readonly actions?: ReactNode;
  /** What to do about a source whose deploy would fail. */
  readonly remedy: string;
  /** The route that deploys the source. */
  readonly row: "builds.upload" | "follow.fetch";
  readonly deploy: () => Promise<unknown>;
}

/** Shows what a deploy of a source would do, asks for what is missing, and deploys it. */
export function PlanForm({ of, title, lead, actions, remedy, ...form }: PlanFormProps) {
  return (
    <div className="max-w-[44rem] rounded-md border border-line p-5 [&>section]:mt-0">
      <Section title={title} lead={lead} actions={actions}>
        <View of={of}>
          {(plan) =>
            plan.failure === null ? (
              <DeployForm plan={plan} {...form} />
            ) : (
              <FailureBox failure={plan.failure}>
                <p className="text-sm text-muted">{remedy}</p>
              </FailureBox>
            )
          }
        </View>
      </Section>
    </div>
  );
}

interface DeployFormProps extends Pick<PlanFormProps, "slug" | "row" | "deploy"> {
  readonly plan: Plan;
}

/** Creates the database and sets the variables that it asks for, then deploys. */
function DeployForm({ slug, plan, row, deploy }: DeployFormProps) {
  const { asked, wantsDatabase } = splitMissing(plan.missing_variables);
  const hasDatabase = useHasDatabase(slug);
  const whyNoDatabase = useWhyNot("database.create");
  const database = useAction("database.create");
  const env = useAction("env.import");
  const params = { slug };
  const send = async (form: FormData) => {
    const variables = variablesIn(form, asked);
    if (form.has("database")) await database.mutateAsync({ params, body: {} });
    if (Object.keys(variables).length > 0) await env.mutateAsync({ params, body: { variables } });
    await deploy();
  };
  return (
    <Form submit="Deploy" why={useWhyNot(row)} onSubmit={send}>
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
          {command !== "" && <Mono>{command}</Mono>}{" "}
          <bdi className="text-muted">
            <Prose>{remark}</Prose>
          </bdi>
        </li>
      ))}
    </ul>
  );
}
