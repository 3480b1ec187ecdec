import { explainPlan } from "../operator/plan/explain.ts";
import { plan as planOf } from "../operator/plan/plan.ts";
import type { CliTools, Place } from "./tools.ts";
import { complainOfFile } from "./validate.ts";

/** Prints the plan that the operator would carry out now. */
export async function plan(tools: CliTools, place: Place): Promise<void> {
  const gathered = await tools.gatherLocal(place);
  if (gathered.kind === "refused") {
    complainOfFile(tools, place.filePath, gathered.problems);
    return;
  }
  tools.print(explainPlan(planOf(gathered.observed)).trimEnd());
  tools.exitWith(0);
}
