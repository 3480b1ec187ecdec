/**
 * The status of a DurableTimer. The operator is its only writer.
 *
 * Words in it are plain strings in the CRD, never enumerations: a newer operator must be able to write a new word through
 * an older CRD. Numbers are coarse and written on change only; live numbers are metrics.
 */
import { z } from "zod";
import { resourceBounds as bounds } from "./bounds.ts";
import { wholeQuantity } from "./quantity.ts";

/** A string that holds one of a list of words; the list is known to the compiler and not to the CRD. */
const word = <Word extends string>() => z.string().max(64) as unknown as z.ZodType<Word, Word>;
const text = (charsMax: number) => z.string().max(charsMax);
const optional = z.exactOptional;
const instant = z.string().max(64).meta({ format: "date-time" });
/** A list whose items are told apart by one key, so that two writers can own different items. */
const listMap = (key: string) => ({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] });
const count = z.int32().min(0);
const percent = z.int32().min(0).max(1_000);
const sizeText = z.union([z.int(), text(bounds.quantityCharsMax).refine((value) => wholeQuantity(value).ok)]);

const condition = z.object({
  type: z.string().min(1).max(316).meta({ description: "Name of the condition, in CamelCase." }),
  status: z.enum(["True", "False", "Unknown"]).meta({ description: "Whether the condition holds." }),
  reason: z.string().min(1).max(1_024).regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/).meta({ description: "Why, as one word for programs." }),
  message: text(bounds.messageCharsMax).meta({ description: "Why, and what to do, for people." }),
  observedGeneration: optional(z.int().min(0)).meta({ description: "metadata.generation that the condition was made from." }),
  lastTransitionTime: instant.meta({ description: "When the status last changed." }),
});

const streamStatus = z.object({
  name: text(bounds.nameCharsMax).meta({ description: "Name of the stream." }),
  incarnation: text(bounds.nameCharsMax).meta({ description: "Random mark of the stream's life, from its metadata." }),
  created: instant.meta({ description: "When the server says that the stream was created." }),
  replicas: z.int32().min(0).max(5).meta({ description: "Copies of the stream." }),
  everHeldData: z.boolean().meta({ description: "Once true, a missing stream is a loss and is never made anew silently." }),
  limitBytes: optional(sizeText).meta({ description: "Largest size; absent when the stream has no limit." }),
  usedPercent: optional(percent).meta({ description: "How full it is, in coarse steps." }),
});

const incident = z.object({
  id: z.string().min(1).max(bounds.incidentIdCharsMax).meta({ description: "Bound to the facts; listed in spec.acknowledge to accept them." }),
  kind: word<string>().meta({ description: "What happened, as one word." }),
  message: text(bounds.messageCharsMax).meta({ description: "What happened, and what acknowledging it will do." }),
});

/** The status of a DurableTimer. */
export const statusSchema = z.object({
  observedGeneration: z.int().min(-1).default(-1).meta({ description: "metadata.generation that the status speaks of; -1 before the operator has seen the resource." }),
  conditions: optional(z.array(condition).max(bounds.conditionsMax)).meta({ ...listMap("type"), description: "Ready is the summary; the gates, in order: BrokerReachable, BrokerCompatible, TopologyReady, WorkersReady, ResumeOpen." }),
  owner: optional(
    z.object({
      id: text(bounds.ownerIdCharsMax).meta({ description: "Owner id stamped on the streams: <cluster id>/<namespace>/<name>." }),
      uid: text(64).meta({ description: "uid of the resource that stamped them." }),
    }),
  ).meta({ description: "Who owns the streams." }),
  broker: optional(
    z.object({
      accountName: optional(text(bounds.nameCharsMax)).meta({ description: "NATS account of the operator's connection." }),
      clusterName: optional(text(bounds.nameCharsMax)).meta({ description: "Name of the NATS cluster." }),
      version: optional(text(64)).meta({ description: "Version of the server." }),
      apiLevel: optional(z.int32()).meta({ description: "JetStream API level." }),
    }),
  ).meta({ description: "The NATS system that the streams live in." }),
  topology: optional(
    z.object({
      layoutVersion: z.int32().min(0).meta({ description: "Version of the layout of streams and consumers." }),
      streams: z.array(streamStatus).max(16).meta({ ...listMap("name"), description: "The streams as they were last seen." }),
    }),
  ).meta({ description: "Streams and consumers." }),
  capacity: optional(
    z.object({
      worstStream: optional(text(bounds.nameCharsMax)).meta({ description: "The fullest stream." }),
      worstPercent: optional(percent).meta({ description: "How full it is, in coarse steps." }),
      accountPercent: optional(percent).meta({ description: "How full the account is; absent when it has no limit." }),
    }),
  ).meta({ description: "How full the streams are." }),
  timers: optional(
    z.object({
      waiting: optional(text(32)).meta({ description: "Timers that wait, to two significant digits." }),
      awaitingFeedback: optional(text(32)).meta({ description: "Timers that have elapsed and await feedback." }),
      overdue: optional(text(32)).meta({ description: "Timers that are due and have not elapsed." }),
      resumesPending: optional(text(32)).meta({ description: "Resumes that nobody has acknowledged." }),
      resumePullers: optional(word<"Present" | "Absent" | "Unknown">()).meta({ description: "Whether somebody asks for resumes." }),
    }),
  ).meta({ description: "What the last sweep counted." }),
  workers: optional(
    z.object({
      everReady: optional(z.boolean()).meta({ description: "The workers were ready once; later updates are no longer held back by the gates." }),
      replicas: count.meta({ description: "Worker pods that exist." }),
      updatedReplicas: optional(count).meta({ description: "Those of the current template." }),
      readyReplicas: optional(count).meta({ description: "Those that are ready." }),
      summary: optional(text(32)).meta({ description: "Ready and wanted workers, such as 2/2." }),
      selector: text(1_024).meta({ description: "Label selector of the pods, for the scale subresource." }),
      image: optional(text(bounds.imageCharsMax)).meta({ description: "Image of the current template." }),
      templateHash: optional(text(64)).meta({ description: "Hash of the current template." }),
      problem: optional(text(bounds.messageCharsMax)).meta({ description: "What keeps a worker from becoming ready." }),
    }),
  ).meta({ description: "The worker pods." }),
  resume: optional(
    z.object({
      consumer: text(bounds.nameCharsMax).meta({ description: "Durable consumer that delivers resumes." }),
      everOpened: z.boolean().meta({ description: "It was opened once; a pause from then on is somebody's wish." }),
    }),
  ).meta({ description: "Delivery of resumes." }),
  migration: optional(
    z.object({
      kind: word<"SchedulesReplicas">().meta({ description: "What is migrated." }),
      from: z.int32().min(0).meta({ description: "Replicas before." }),
      to: z.int32().min(0).meta({ description: "Replicas after." }),
      step: word<"Waiting" | "Purging" | "Draining" | "Recreating">().meta({ description: "What is done now." }),
      since: instant.meta({ description: "When that step began." }),
    }),
  ).meta({ description: "A change that takes several steps and is under way; absent otherwise." }),
  applied: optional(
    z.array(z.object({ path: text(bounds.nameCharsMax).meta({ description: "Field below spec." }), value: text(bounds.nameCharsMax).meta({ description: "What it was; empty when it was not set." }) })).max(16),
  ).meta({ ...listMap("path"), description: "Fields that cannot change, as they were when the streams were made." }),
  incidents: optional(z.array(incident).max(16)).meta({ ...listMap("id"), description: "What only a person may decide, because data was lost or would be." }),
});
