"""The other side of `train_step.py`: TRL's GRPOTrainer on a transformers Qwen3, step by step.

It runs as a process of its own, in an environment that has torch, transformers and trl and need not
have this package. `FOLDER` holds the policy to start from (`config.json`, `model.safetensors`), its
`tokenizer.json`, and `peer.json`: the settings and the prompts of all steps, in order. On standard
output it says one JSON object a line: first what it is and the log-probabilities of the first
prompt, then the times and counts of every step that a line on standard input asks for. It ends with
its standard input. Without trl it says so and ends.

The settings are those that make TRL fast at this: attention of torch itself, float32, no gradient
checkpointing, no logging, no reference model, one pass over each batch.

  python benchmarks/train_peer.py FOLDER
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

# What never ends a turn: an id behind those that the model can write.
NEVER = "<|never|>"
HERE = Path(__file__).resolve().parent


def main() -> None:
    folder = Path(sys.argv[1])
    # Benchmarks are called as packages are that transformers looks for.
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != HERE]
    # Libraries print; only this file may write where its answers are read.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(found: dict[str, Any]) -> None:
        answers.write(json.dumps(found) + "\n")
        answers.flush()

    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        trainer = make_trainer(folder, say)
    except ImportError as error:
        say({"absent": str(error)})
        return
    trainer.train()


def make_trainer(folder: Path, say: Any) -> Any:
    import torch
    import transformers
    import trl
    from datasets import Dataset

    settings = json.loads((folder / "peer.json").read_text(encoding="utf-8"))
    rows, micro = settings["group"] * settings["questions"], settings["micro_rows"]
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="sdpa"
    )
    tokeniser = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), eos_token=NEVER, pad_token=settings["pad"]
    )
    if tokeniser.eos_token_id < model.config.vocab_size:
        sys.exit(f"{NEVER} is an id of the model")
    arguments = trl.GRPOConfig(
        output_dir=str(folder / "out"),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to="none",
        logging_strategy="no",
        save_strategy="no",
        disable_tqdm=True,
        seed=settings["seed"],
        max_steps=len(settings["prompts"]) // settings["questions"],
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=rows // micro,
        num_generations=settings["group"],
        max_completion_length=settings["tokens"],
        shuffle_dataset=False,
        dataloader_pin_memory=False,
        temperature=1.0,
        beta=0.0,
        epsilon=settings["clip_low"],
        epsilon_high=settings["clip_high"],
        loss_type="dapo",
        learning_rate=settings["learning_rate"],
        lr_scheduler_type="constant",
        adam_beta1=settings["beta1"],
        adam_beta2=settings["beta2"],
        max_grad_norm=settings["clip_norm"],
        weight_decay=0.0,
    )

    def by_turns(completions: list[str], **_: Any) -> list[float]:
        """As `train_step.ByTurns`: 0, 1, 0, 1."""
        return [float(at % 2) for at in range(len(completions))]

    # Texts, not conversations: they hold the chat template already.
    trainer = trl.GRPOTrainer(
        model=model,
        args=arguments,
        reward_funcs=by_turns,
        train_dataset=Dataset.from_list([{"prompt": text} for text in settings["prompts"]]),
        processing_class=tokeniser,
    )
    clock = Clock(trainer)
    hello = {
        "trl": trl.__version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "threads": torch.get_num_threads(),
        "logps": first_logps(model, tokeniser(settings["prompts"][0])["input_ids"]),
    }
    trainer.add_callback(steps_on_demand(clock, hello, say))
    return trainer


def first_logps(model: Any, ids: list[int]) -> list[float]:
    """Log-probabilities of a text's tokens after its first."""
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1]
    normal = torch.log_softmax(logits.float(), dim=-1)
    return normal.gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()


class Clock:
    """Times and counts of one step, taken around the trainer's own methods."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        self.found: dict[str, float] = {}
        self._counted("_generate_single_turn", "generation", self._count)
        self._counted("_generate_and_score_completions", "rollouts", None)

    def _counted(self, method: str, name: str, more: Any) -> None:
        inner = getattr(self.trainer, method)

        def timed(*args: Any, **keywords: Any) -> Any:
            start = time.perf_counter()
            out = inner(*args, **keywords)
            self.found[name] = self.found.get(name, 0.0) + time.perf_counter() - start
            if more is not None:
                more(args[0], out[0])
            return out

        setattr(self.trainer, method, timed)

    def _count(self, prompts: list[list[int]], completions: list[list[int]]) -> None:
        self.found["prompt_tokens"] = sum(map(len, prompts))
        self.found["generated"] = sum(map(len, completions))

    def start(self) -> None:
        self.found = {}
        self._before = [leaf.detach().clone() for leaf in self.trainer.model.parameters()]
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def stop(self) -> dict[str, float]:
        """Of the step since `start`."""
        whole, cpu = time.perf_counter() - self._began, time.process_time() - self._cpu
        after = self.trainer.model.parameters()
        moved = max(
            float((new.detach() - old).abs().max())
            for new, old in zip(after, self._before, strict=True)
        )
        update = whole - self.found["rollouts"]
        return self.found | {
            "step": whole,
            "cpu": cpu,
            "update": update,
            "moved": moved,
        }


def steps_on_demand(clock: Clock, hello: dict[str, Any], say: Any) -> Any:
    """A callback that holds the training loop between two steps until it is asked for one."""
    import transformers

    class OnDemand(transformers.TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            say(hello)
            self.wait()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            say(clock.stop())
            self.wait()

        def wait(self) -> None:
            if not sys.stdin.readline():
                sys.exit()
            clock.start()

    return OnDemand()


if __name__ == "__main__":
    main()
