import { useProject } from "../../data/project.ts";
import { Page } from "../../ui/page.tsx";
import { View } from "../../ui/view.tsx";
import { FirstDeployment } from "./first-deployment.tsx";

export function ProjectPage() {
  const project = useProject();
  return (
    <View of={project}>
      {(data) => (
        <Page title="Overview">
          <FirstDeployment project={data} />
        </Page>
      )}
    </View>
  );
}
