import unittest

from fakes import Config, Model, Module, ModuleList, llama_layer, modules
from plumbline_hf import probe_names, structure
from plumbline_hf.problem import LayoutError


class Structure(unittest.TestCase):
    def test_llama(self):
        m = Model(3, llama_layer)
        s = structure.find(m)
        layer = list(m.children["model"].children["layers"])[1]
        self.assertEqual(3, len(s.layers))
        attention, mlp = layer.children["self_attn"].children, layer.children["mlp"]
        want = {
            "attn_norm": (attention["q_proj"], "in", "layers.1.self_attn.q_proj"),
            "q": (attention["q_proj"], "out", "layers.1.self_attn.q_proj"),
            "k": (attention["k_proj"], "out", "layers.1.self_attn.k_proj"),
            "v": (attention["v_proj"], "out", "layers.1.self_attn.v_proj"),
            "q_rope": None,
            "k_rope": None,
            "attn_out": (attention["o_proj"], "in", "layers.1.self_attn.o_proj"),
            "resid_mid": (layer.children["post_attention_layernorm"], "in", "layers.1.post_attention_layernorm"),
            "mlp_out": (mlp, "out", "layers.1.mlp"),
            "resid_post": (layer, "out", "layers.1"),
        }
        got = {p.rpartition(".")[2]: v for p, v in s.places.items() if p.startswith("blocks.1.")}
        self.assertEqual(want, got)
        self.assertEqual((s.layers[0], "in", "layers.0"), s.places["embed"])
        self.assertEqual((s.norm, "out", "norm"), s.places["final_norm"])
        self.assertEqual(set(probe_names.ROUTER), {p.rpartition(".")[2] for p in s.missing})

    def parts(self, layer, **more):
        s = structure.find(Model(2, layer, **more))
        self.assertFalse(set(s.places) & set(s.missing))
        first = {p.removeprefix("blocks.0."): why for p, why in s.missing.items() if p.startswith("blocks.0.")}
        return s, {part: why for part, why in first.items() if part not in probe_names.ROUTER}

    def test_fused_projections_are_named(self):
        s, missing = self.parts(lambda: Module(
            attn=Module(**modules("c_attn", "c_proj")), mlp=Module(), ln_1=Module(), ln_2=Module()),
            layers="h", norm="ln_f", rotary=False)  # fmt: skip
        self.assertEqual({"q", "k", "v", "q_rope", "k_rope"}, set(missing))
        self.assertEqual("fused with others in c_attn", missing["k"])
        self.assertEqual("no rotary embedding found", missing["k_rope"])
        self.assertEqual("h.0.attn.c_attn", s.places["blocks.0.attn_norm"][2])
        self.assertEqual(("in", "h.0.attn.c_proj"), s.places["blocks.0.attn_out"][1:])

    def test_a_norm_between_projection_and_rope(self):
        def layer():
            x = llama_layer()
            x.children["self_attn"].children.update(modules("q_norm", "k_norm"))
            return x

        _, missing = self.parts(layer)
        self.assertEqual({"q", "k"}, set(missing))
        self.assertIn("q_norm lies between", missing["q"])

    def test_norms_on_both_sides_of_the_mlp(self):
        def layer():
            x = llama_layer()
            x.children.update(modules("pre_feedforward_layernorm", "post_feedforward_layernorm"))
            return x

        s, _ = self.parts(layer)
        self.assertEqual(("in", "layers.0.pre_feedforward_layernorm"), s.places["blocks.0.resid_mid"][1:])
        behind = s.layers[0].children["post_feedforward_layernorm"]
        self.assertEqual((behind, "out", "layers.0.post_feedforward_layernorm"), s.places["blocks.0.mlp_out"])

    def test_a_norm_behind_the_mlp_alone(self):
        def layer():
            x = llama_layer()
            x.children.update(modules("post_feedforward_layernorm"))
            return x

        s, _ = self.parts(layer)
        self.assertEqual(("in", "layers.0.mlp"), s.places["blocks.0.resid_mid"][1:])

    def test_a_layer_without_anything_known_still_has_its_rows(self):
        s, missing = self.parts(lambda: Module(mixer=Module()))
        self.assertEqual("no attention found: looked for self_attn, attention, attn, self_attention", missing["q"])
        self.assertIn("no MLP found", missing["mlp_out"])
        self.assertEqual("layers.0", s.places["blocks.0.resid_post"][2])

    def test_another_layout_is_refused_with_what_was_looked_for(self):
        def refused(model, *texts):
            with self.assertRaises(LayoutError) as caught:
                structure.find(model)
            for text in texts:
                self.assertIn(text, str(caught.exception))

        refused(Model(2, llama_layer, norm="rms"), "got no final norm beside layers", "embed_tokens", "want one of norm, ln_f")
        m = Model(2, llama_layer)
        m.config = Config(num_hidden_layers=5)
        refused(m, "got no list", "want one list of the 5 decoder layers", "embed_tokens, layers, norm")
        m.config = Config()
        refused(m, "got no num_hidden_layers")
        m = Model(2, llama_layer, layers="encoder_layers")
        m.get_decoder().children["decoder_layers"] = ModuleList([llama_layer(), llama_layer()])
        refused(m, "got several lists of that length")

    def test_a_list_one_level_below(self):
        m = Model(2, llama_layer)
        m.get_decoder = lambda: m
        self.assertEqual("model.layers.0", structure.find(m).places["embed"][2])


if __name__ == "__main__":
    unittest.main()
