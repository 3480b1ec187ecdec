/** What a plan asks for: each action is one write, named after what it does, with the reason a person would want. */
import type { EpochMs } from "../../base/units.ts";
import type { ConsumerRole, DesiredWorkers, StreamRole } from "./observed.ts";

/** Configurations are in the server's own field names. */
type ServerConfig = Readonly<Record<string, unknown>>;

/** One write, and why it is wanted. */
export type Action = { readonly because: string } & (
  | { readonly kind: "CreateStream"; readonly role: StreamRole; readonly config: ServerConfig }
  /** `changes` are the fields that differ; `isRepair` when the spec did not change since the last pass, so somebody else did. */
  | {
      readonly kind: "UpdateStream";
      readonly role: StreamRole;
      readonly config: ServerConfig;
      readonly changes: readonly string[];
      readonly isRepair: boolean;
    }
  /** Puts our stamp on a stream of the owner that the resource names, or of nobody. */
  | { readonly kind: "AdoptStream"; readonly role: StreamRole; readonly config: ServerConfig; readonly from: string }
  | { readonly kind: "WriteOwnerKey"; readonly text: string }
  | { readonly kind: "CreateConsumer"; readonly role: ConsumerRole; readonly stream: string; readonly config: ServerConfig }
  | {
      readonly kind: "UpdateConsumer";
      readonly role: ConsumerRole;
      readonly stream: string;
      readonly config: ServerConfig;
      readonly changes: readonly string[];
      readonly isRepair: boolean;
    }
  | { readonly kind: "PauseConsumer"; readonly role: ConsumerRole; readonly stream: string; readonly consumer: string; readonly untilMs: EpochMs }
  | { readonly kind: "UnpauseConsumer"; readonly role: ConsumerRole; readonly stream: string; readonly consumer: string }
  /**
   * Of a resource that is being deleted, or of SCHEDULES while it migrates. Its stamp is looked at again. `isForced` when what it
   * holds may go: a person accepted it, or it is derived.
   */
  | {
      readonly kind: "DeleteStream";
      readonly role: StreamRole;
      readonly stream: string;
      readonly ownerId: string;
      readonly incarnation: string;
      readonly isForced: boolean;
    }
  /** Of SCHEDULES alone, while it migrates. */
  | { readonly kind: "PurgeStream"; readonly role: StreamRole; readonly stream: string; readonly subject: string; readonly ownerId: string }
  /** Holds the resource in a later deletion, or lets go of it. Nothing else is done in the same pass: it makes a new version. */
  | { readonly kind: "SetFinalizer"; readonly isHeld: boolean }
  /** `changes` is empty when there are none yet. */
  | { readonly kind: "ApplyWorkers"; readonly desired: DesiredWorkers; readonly changes: readonly string[] }
);
