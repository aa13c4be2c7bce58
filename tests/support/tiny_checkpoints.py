"""Tiny checkpoints of real transformers classes, random weights: processor, chat template and generation are real.

They know nothing; what they say is noise, but the same noise each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORDS = (
    "In about ten words , say where the object is and how to pick up push reach place red green blue cube ball . ? user"
)
HIDDEN = 32
IMAGE_PX = 28
SPREAD = 0.3
"""Standard deviation of the weights: wide, so that answers depend on image and question."""


def tokenizer(special: dict[str, str], chat_template: str) -> Any:
    """A byte-level BPE tokenizer trained on one sentence, with the special tokens a model wants."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    names = ["<pad>", "<s>", "</s>", *special.values()]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bare.train_from_iterator(
        [WORDS], trainers.BpeTrainer(vocab_size=400, special_tokens=names, initial_alphabet=alphabet)
    )
    made = PreTrainedTokenizerFast(
        tokenizer_object=bare, pad_token="<pad>", bos_token="<s>", eos_token="</s>", extra_special_tokens=special
    )
    made.chat_template = chat_template
    return made


def _template(image: str) -> str:
    """A chat template in which each image of a message is the text `image`."""
    return (
        "{% for message in messages %}{{ message['role'] }} {% for part in message['content'] %}"
        "{% if part['type'] == 'image' %}"
        + image
        + "{% else %}{{ part['text'] }}{% endif %}{% endfor %}</s>{% endfor %}"
        "{% if add_generation_prompt %}assistant {% endif %}"
    )


def _text(vocabulary: int, **more: Any) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "initializer_range": SPREAD,
        "max_position_embeddings": 2048,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **more,
    }


def _save(folder: Path, model: Any, *parts: Any) -> Path:
    for part in (model, *parts):
        part.save_pretrained(folder)
    return folder


def internvl(folder: Path) -> Path:
    """InternVLForConditionalGeneration over Qwen2, the class of InternVL3-*-hf."""
    from transformers import InternVLConfig, InternVLForConditionalGeneration
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil

    special = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    words = tokenizer(special, _template("<IMG_CONTEXT>\\n"))
    config = InternVLConfig(
        vision_config={
            "hidden_size": HIDDEN,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "initializer_range": SPREAD,
            "image_size": [IMAGE_PX, IMAGE_PX],
            "patch_size": [7, 7],
        },
        text_config={"model_type": "qwen2", **_text(len(words))},
        image_token_id=words.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=4,
    )
    pixels = GotOcr2ImageProcessorPil(
        size={"height": IMAGE_PX, "width": IMAGE_PX}, crop_to_patches=True, min_patches=1, max_patches=4
    )
    _save(folder, InternVLForConditionalGeneration(config), words, pixels)
    settings = {"processor_class": "InternVLProcessor", "image_seq_length": 4}
    (folder / "processor_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def _qwen(folder: Path, newer: bool) -> Path:
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2VLConfig,
        Qwen2VLForConditionalGeneration,
    )
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    special = {
        "vision_start_token": "<|vision_start|>",
        "vision_end_token": "<|vision_end|>",
        "image_token": "<|image_pad|>",
        "video_token": "<|video_pad|>",
    }
    words = tokenizer(special, _template("<|vision_start|><|image_pad|><|vision_end|>"))
    ids = {f"{name}_id": words.convert_tokens_to_ids(token) for name, token in special.items()}
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0, "type": "mrope"}
    text = _text(len(words), rope_parameters=rope)
    if newer:
        vision = {
            "hidden_size": HIDDEN,
            "out_hidden_size": HIDDEN,
            "intermediate_size": 64,
            "depth": 2,
            "num_heads": 4,
            "initializer_range": SPREAD,
            "fullatt_block_indexes": [1],
            "window_size": 56,
        }
        model = Qwen2_5_VLForConditionalGeneration(Qwen2_5_VLConfig(text_config=text, vision_config=vision, **ids))
    else:
        vision = {
            "embed_dim": HIDDEN,
            "hidden_size": HIDDEN,
            "depth": 2,
            "num_heads": 4,
            "initializer_range": SPREAD,
            "mlp_ratio": 2,
        }
        model = Qwen2VLForConditionalGeneration(Qwen2VLConfig(text_config=text, vision_config=vision, **ids))
    pixels = Qwen2VLImageProcessorPil(size={"shortest_edge": 28 * 28, "longest_edge": 28 * 28 * 16})
    return _save(folder, model, words, pixels)


def qwen2_vl(folder: Path) -> Path:
    """Qwen2VLForConditionalGeneration."""
    return _qwen(folder, newer=False)


def qwen2_5_vl(folder: Path) -> Path:
    """Qwen2_5_VLForConditionalGeneration."""
    return _qwen(folder, newer=True)


def ovis2(folder: Path) -> Path:
    """Ovis2ForConditionalGeneration over Qwen2, the class of Ovis2-*-hf."""
    from transformers import Ovis2Config, Ovis2ForConditionalGeneration, Ovis2Processor
    from transformers.models.ovis2.image_processing_pil_ovis2 import Ovis2ImageProcessorPil

    marks = ["<IMG_START>", "<IMG_GRID>", "<IMG_COL>", "<IMG_ROW>", "<IMG_END>"]
    special = {"image_token": "<image>", "atom": "<IMG_ATOM>", **{mark.strip("<>").lower(): mark for mark in marks}}
    words = tokenizer(special, _template("<image>\\n"))
    config = Ovis2Config(
        vision_config={
            "hidden_size": HIDDEN,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "initializer_range": SPREAD,
            "image_size": IMAGE_PX,
            "patch_size": 7,
            "vocab_size": 64,
            "hidden_stride": 2,
            "num_visual_indicator_tokens": 5,
        },
        text_config={"model_type": "qwen2", **_text(len(words))},
        image_token_id=words.convert_tokens_to_ids("<IMG_ATOM>"),
        visual_indicator_token_ids=words.convert_tokens_to_ids(marks),
        vocab_size=len(words),
        hidden_size=HIDDEN,
    )
    pixels = Ovis2ImageProcessorPil(
        size={"height": IMAGE_PX, "width": IMAGE_PX}, crop_to_patches=True, min_patches=1, max_patches=4
    )
    processor = Ovis2Processor(
        pixels, words, chat_template=words.chat_template, image_token="<image>", image_seq_length=4
    )
    return _save(folder, Ovis2ForConditionalGeneration(config), processor)


def llava(folder: Path) -> Path:
    """LlavaForConditionalGeneration: CLIP and Llama."""
    from transformers import LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    words = tokenizer({"image_token": "<image>"}, _template("<image>\\n"))
    config = LlavaConfig(
        vision_config={
            "model_type": "clip_vision_model",
            "hidden_size": HIDDEN,
            "intermediate_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "initializer_range": SPREAD,
            "image_size": IMAGE_PX,
            "patch_size": 7,
            "projection_dim": HIDDEN,
        },
        text_config={"model_type": "llama", **_text(len(words))},
        image_token_index=words.convert_tokens_to_ids("<image>"),
    )
    square = {"height": IMAGE_PX, "width": IMAGE_PX}
    pixels = CLIPImageProcessorPil(size={"shortest_edge": IMAGE_PX}, crop_size=square)
    processor = LlavaProcessor(
        pixels,
        words,
        patch_size=7,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=words.chat_template,
    )
    return _save(folder, LlavaForConditionalGeneration(config), processor)


CHECKPOINTS: dict[str, Callable[[Path], Path]] = {
    "internvl": internvl,
    "qwen2_vl": qwen2_vl,
    "qwen2_5_vl": qwen2_5_vl,
    "ovis2": ovis2,
    "llava": llava,
}


def make(name: str, folder: Path) -> Path:
    """Make and save the checkpoint called `name`, from seed 0."""
    import torch

    torch.manual_seed(0)
    return CHECKPOINTS[name](folder)


def smolvlm(folder: Path) -> Path:
    """SmolVLMForConditionalGeneration, whose processor looks up the rate of videos for every prompt."""
    from transformers import SmolVLMConfig, SmolVLMForConditionalGeneration
    from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

    special = {
        "fake_image_token": "<fake_token_around_image>",
        "image_token": "<image>",
        "global_image_token": "<global-img>",
        "end_of_utterance_token": "<end_of_utterance>",
        "video_token": "<video>",
    }
    words = tokenizer(special, _template("<image>"))
    config = SmolVLMConfig(
        vision_config={
            "hidden_size": HIDDEN,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "initializer_range": SPREAD,
            "image_size": IMAGE_PX,
            "patch_size": 7,
        },
        text_config={"model_type": "llama", **_text(len(words))},
        image_token_id=words.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=0,
    )
    edge = {"longest_edge": IMAGE_PX}
    pixels = SmolVLMImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)
    _save(folder, SmolVLMForConditionalGeneration(config), words, pixels)
    settings = {"processor_class": "SmolVLMProcessor", "image_seq_len": 4}
    (folder / "processor_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def paligemma(folder: Path) -> Path:
    """PaliGemmaForConditionalGeneration, which has no chat template."""
    from transformers import PaliGemmaConfig, PaliGemmaForConditionalGeneration
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    words = tokenizer({"image_token": "<image>"}, "")
    words.chat_template = None
    config = PaliGemmaConfig(
        vision_config={
            "hidden_size": HIDDEN,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "initializer_range": SPREAD,
            "image_size": IMAGE_PX,
            "patch_size": 7,
            "projection_dim": HIDDEN,
        },
        text_config={"model_type": "gemma", **_text(len(words), head_dim=8)},
        image_token_index=words.convert_tokens_to_ids("<image>"),
        projection_dim=HIDDEN,
        hidden_size=HIDDEN,
    )
    pixels = SiglipImageProcessorPil(size={"height": IMAGE_PX, "width": IMAGE_PX})
    pixels.image_seq_length = 16
    return _save(folder, PaliGemmaForConditionalGeneration(config), words, pixels)
