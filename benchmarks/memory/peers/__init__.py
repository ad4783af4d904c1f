"""What other programs need for a model, one module a peer.

Each module has `measure(path)`, which takes an ONNX file with static shapes and returns a dict:

    bytes   memory for activations, without weights, inputs and outputs (as our arena), in bytes
    ...     other numbers that the peer gives, for the JSON output

and may raise anything: the last line of the exception is the reason why the peer has no number. A module runs in a process
of its own, `python -m peers NAME FILE`, so that neither a crash nor a time limit of one peer touches another.
"""
