"""Make tests/train/golden: tiny Qwen3 checkpoints and what `transformers` answers with them.

    pip install -e '.[golden]'
    python scripts/golden_qwen3.py

Two models of random weights, one with a tied head in a single file, one with a head of its own in
shards. Head width times heads is not the model's width, norms are not all one, and the positions
reach far enough to tell a wrong rotation: every part has to be right for the logits to agree.
The tests read the files alone and need neither torch nor transformers.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
import transformers

HERE = Path(__file__).resolve().parent.parent / "tests" / "train" / "golden"
ROWS, LENGTH, VOCAB = 3, 14, 96


def model(tied: bool, seed: int) -> transformers.Qwen3ForCausalLM:
    """A random model in float32; scales of norms are drawn, too."""
    torch.manual_seed(seed)
    config = transformers.Qwen3Config(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=48,
        rope_theta=10_000.0,
        rms_norm_eps=1e-6,
        tie_word_embeddings=tied,
        initializer_range=0.3,
        attn_implementation="eager",
    )
    made = transformers.Qwen3ForCausalLM(config).to(torch.float32).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
    return made


def inputs() -> dict[str, np.ndarray]:
    """One plain row, one that is padded on the left, one that starts far from zero."""
    draws = np.random.default_rng(7)
    valid = np.ones((ROWS, LENGTH), bool)
    valid[1, :5] = False
    positions = np.tile(np.arange(LENGTH, dtype=np.int32), (ROWS, 1))
    positions[1] = np.maximum(positions[1] - 5, 0)
    positions[2] += 700
    tokens = draws.integers(0, VOCAB, (ROWS, LENGTH)).astype(np.int32)
    return {"tokens": tokens, "positions": positions, "valid": valid}


def main() -> None:
    """Write both folders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=HERE)
    folder = parser.parse_args().folder
    given = inputs()
    for name, tied, shard in (("tied", True, "1GB"), ("free", False, "40KB")):
        made = model(tied, seed=3)
        with torch.no_grad():
            logits = made(
                input_ids=torch.tensor(given["tokens"], dtype=torch.long),
                attention_mask=torch.tensor(given["valid"], dtype=torch.long),
                position_ids=torch.tensor(given["positions"], dtype=torch.long),
            ).logits
        made.save_pretrained(folder / name, max_shard_size=shard)
        (folder / name / "generation_config.json").unlink(missing_ok=True)
        np.savez(folder / name / "expected.npz", **given, logits=logits.numpy())
        print(f"{name}: transformers {transformers.__version__}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
