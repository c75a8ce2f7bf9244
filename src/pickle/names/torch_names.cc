#include "pickle/names/known_names.h"

#include <array>

namespace postflight {
namespace {

using namespace known;

// Plain records when they are unpickled; their constructors set up groups of
// processes.
constexpr KnownName kRecord{Trust::kTorch, Rule::kBare, {}};

constexpr std::array kTorchNames = {
    NameRow{
        "torch",
        "Size Tensor device dtype memory_format layout float64 double float32 "
        "float float16 half bfloat16 int64 long int32 int int16 short int8 "
        "uint8 uint16 uint32 uint64 bool complex32 chalf complex64 cfloat "
        "complex128 cdouble qint8 qint32 quint8 quint4x2 quint2x4 bits8 "
        "bits16 bits1x8 bits2x4 bits4x2 float8_e5m2 float8_e4m3fn "
        "float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu float4_e2m1fn_x2 int1 "
        "int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 "
        "uint7 per_tensor_affine per_channel_affine per_tensor_symmetric "
        "per_channel_symmetric per_channel_affine_float_qparams qscheme "
        "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc "
        "_mkldnn jagged contiguous_format preserve_format channels_last "
        "channels_last_3d Generator finfo iinfo",
        kTorch},
    NameRow{
        "torch",
        "DoubleStorage FloatStorage HalfStorage BFloat16Storage LongStorage "
        "IntStorage ShortStorage CharStorage ByteStorage BoolStorage "
        "ComplexDoubleStorage ComplexFloatStorage QInt8Storage QInt32Storage "
        "QUInt8Storage QUInt4x2Storage QUInt2x4Storage UntypedStorage "
        "TypedStorage _UntypedStorage _TypedStorage",
        kTorch},
    NameRow{
        "torch.cuda",
        "DoubleStorage FloatStorage HalfStorage BFloat16Storage LongStorage "
        "IntStorage ShortStorage CharStorage ByteStorage BoolStorage "
        "ComplexDoubleStorage ComplexFloatStorage UntypedStorage TypedStorage",
        kTorch},
    NameRow{"torch.storage",
            "UntypedStorage TypedStorage _UntypedStorage _TypedStorage",
            kTorch},
    NameRow{"torch",
            "DoubleTensor FloatTensor HalfTensor BFloat16Tensor LongTensor "
            "IntTensor ShortTensor CharTensor ByteTensor BoolTensor",
            kTorch},
    NameRow{"torch.cuda",
            "DoubleTensor FloatTensor HalfTensor BFloat16Tensor LongTensor "
            "IntTensor ShortTensor CharTensor ByteTensor BoolTensor",
            kTorch},
    NameRow{"torch.sparse",
            "DoubleTensor FloatTensor HalfTensor BFloat16Tensor LongTensor "
            "IntTensor ShortTensor CharTensor ByteTensor BoolTensor",
            kTorch},
    NameRow{"torch.cuda.sparse",
            "DoubleTensor FloatTensor HalfTensor BFloat16Tensor LongTensor "
            "IntTensor ShortTensor CharTensor ByteTensor BoolTensor",
            kTorch},
    NameRow{
        "torch._utils",
        "_rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 "
        "_rebuild_parameter _rebuild_parameter_with_state "
        "_rebuild_sparse_tensor _rebuild_sparse_csr_tensor _rebuild_qtensor "
        "_rebuild_nested_tensor _rebuild_meta_tensor_no_storage "
        "_rebuild_device_tensor_from_cpu_tensor "
        "_rebuild_device_tensor_from_numpy _rebuild_xla_tensor "
        "_rebuild_wrapper_subclass",
        kTorch},
    NameRow{"torch._utils", "_import_dotted_name", kReaches},
    NameRow{"torch._tensor", "Tensor", kTorch},
    // They call the function that rebuilds the tensor's base.
    NameRow{"torch._tensor",
            "_rebuild_from_type _rebuild_from_type_v2",
            {Trust::kTorch, Rule::kRebuilds, {}}},
    NameRow{"torch.tensor",
            "_rebuild_from_type _rebuild_from_type_v2",
            {Trust::kTorch, Rule::kRebuilds, {}}},
    NameRow{"torch.jit._pickle",
            "build_intlist build_tensorlist build_doublelist build_boollist "
            "build_tensor_from_id restore_type_tag",
            {Trust::kTorch, Rule::kNone, {}, true}},
    NameRow{"torch.nn.parameter",
            "Parameter Buffer UninitializedParameter UninitializedBuffer",
            kTorch},
    NameRow{"torch.nn", "Parameter Buffer", kTorch},
    NameRow{"torch.nested._internal.nested_tensor", "_rebuild_njt NestedTensor",
            kTorch},
    NameRow{"torch.serialization", "_get_layout", kTorch},
    NameRow{"torch._dynamo.decorators", "_DimRange", kTorch},
    NameRow{"torch._subclasses.fake_tensor", "FakeTensor", kTorch},
    NameRow{
        "torch.return_types",
        "aminmax cummax cummin frexp geqrf histogram histogramdd kthvalue "
        "linalg_cholesky_ex linalg_eig linalg_eigh linalg_inv_ex "
        "linalg_ldl_factor linalg_ldl_factor_ex linalg_lstsq linalg_lu "
        "linalg_lu_factor linalg_lu_factor_ex linalg_qr linalg_slogdet "
        "linalg_solve_ex linalg_svd lu_unpack max median min mode nanmedian "
        "qr slogdet sort svd topk triangular_solve unpack_dual",
        kTorch},
    // The records of distributed tensors and checkpoints: data classes whose
    // state is set from what the pickle holds.
    NameRow{"torch.distributed._mesh_layout", "_MeshLayout", kTorch},
    NameRow{"torch.distributed._shard.metadata", "ShardMetadata", kTorch},
    NameRow{"torch.distributed._shard.sharded_tensor.api", "ShardedTensor",
            kRecord},
    NameRow{"torch.distributed._shard.sharded_tensor.metadata",
            "ShardedTensorMetadata TensorProperties MEM_FORMAT_ENCODING",
            kTorch},
    NameRow{"torch.distributed._shard.sharded_tensor.shard", "Shard", kTorch},
    NameRow{"torch.distributed._tensor.api", "DTensor", kTorch},
    NameRow{"torch.distributed._tensor.placement_types",
            "Replicate Partial _Partial Shard _StridedShard DTensorSpec "
            "TensorMeta",
            kTorch},
    NameRow{"torch.distributed.checkpoint.filesystem", "_StorageInfo", kTorch},
    NameRow{"torch.distributed.checkpoint.metadata",
            "BytesStorageMetadata ChunkStorageMetadata Metadata MetadataIndex "
            "StorageMeta TensorProperties TensorStorageMetadata "
            "_MEM_FORMAT_ENCODING",
            kTorch},
    NameRow{"torch.distributed.device_mesh", "DeviceMesh", kRecord},
    NameRow{"torch.distributed.device_mesh", "_MeshLayout", kTorch},
    NameRow{"torch.distributed.tensor", "DeviceMesh", kRecord},
    NameRow{"torch.distributed.tensor", "DTensor Replicate Partial Shard",
            kTorch},
    NameRow{"torch.distributed.tensor._api", "DTensor", kTorch},
    NameRow{"torch.distributed.tensor._dtensor_spec",
            "DTensorSpec TensorMeta ShardOrderEntry", kTorch},
    NameRow{"torch.distributed.tensor.placement_types",
            "Replicate Partial _Partial Shard _StridedShard MaskPartial",
            kTorch},
    NameRow{"torch.storage", "_load_from_bytes",
            does("loads another pickle", Rule::kLoadsBytes)},
    NameRow{"torch", "load", kLoadsPickles},
    NameRow{"torch.serialization", "load _load _legacy_load torch_load",
            kLoadsPickles},
    NameRow{"torch.serialization", "add_safe_globals register_package",
            kRegisters},
    NameRow{"torch.jit", "load _load_for_lite_interpreter", kLoadsPickles},
    NameRow{"torch", "save from_file", kTouchesFiles},
    NameRow{"torch.serialization", "save", kTouchesFiles},
    NameRow{"torch.jit", "save", kTouchesFiles},
    NameRow{"torch", "compile vmap", kCalls},
    NameRow{"torch.jit._serialization", kEveryName, kLoadsPickles},
    NameRow{"torch.jit.annotations", kEveryName, kEvaluates},
    NameRow{"torch.jit.unsupported_tensor_ops", kEveryName, kEvaluates},
    NameRow{"torch.jit.frontend", kEveryName, kEvaluates},
    NameRow{"torch.jit._script", kEveryName, kEvaluates},
    NameRow{"torch.hub", kEveryName, kEvaluates},
    NameRow{"torch.ops", kEveryName, kNativeCode},
    NameRow{"torch._ops", kEveryName, kNativeCode},
    NameRow{"torch.classes", kEveryName, kNativeCode},
    NameRow{"torch._classes", kEveryName, kNativeCode},
    NameRow{"torch.utils.cpp_extension", kEveryName, kNativeCode},
    NameRow{"torch.utils._cpp_extension_versioner", kEveryName, kNativeCode},
    NameRow{"torch.utils.collect_env", kEveryName, kRunsPrograms},
    NameRow{"torch.utils.bottleneck", kEveryName, kEvaluates},
    NameRow{"torch.utils.model_zoo", kEveryName, kNetwork},
    NameRow{"torch.utils.model_dump", kEveryName, kTouchesFiles},
    NameRow{"torch.utils.tensorboard", kEveryName, kTouchesFiles},
    NameRow{"torch.utils._config_module", kEveryName, kLoadsPickles},
    NameRow{"torch.utils.data.datapipes.utils.decoder", kEveryName,
            kLoadsPickles},
    NameRow{"torch.utils.checkpoint", "checkpoint checkpoint_sequential",
            kCalls},
    NameRow{"torch.package", kEveryName, kEvaluates},
    NameRow{"torch.fx.graph_module", kEveryName, kEvaluates},
    NameRow{"torch.fx._lazy_graph_module", kEveryName, kEvaluates},
    NameRow{"torch.fx.experimental", kEveryName, kEvaluates},
    NameRow{"torch._dynamo", kEveryName, kEvaluates},
    NameRow{"torch._inductor", kEveryName, kRunsPrograms},
    NameRow{"torch._export", kEveryName, kEvaluates},
    NameRow{"torch.export", kEveryName, kLoadsPickles},
    NameRow{"torch.onnx", kEveryName, kTouchesFiles},
    NameRow{"torch.testing", kEveryName, kEvaluates},
    NameRow{"torch.multiprocessing", kEveryName, kRunsPrograms},
    NameRow{"torch.distributed.rpc", kEveryName, kReaches},
    NameRow{"torch.distributed.nn", kEveryName, kReaches},
    NameRow{"torch.distributed.run", kEveryName, kRunsPrograms},
    NameRow{"torch.distributed.launch", kEveryName, kRunsPrograms},
    NameRow{"torch.distributed.elastic", kEveryName, kRunsPrograms},
    NameRow{"torch.distributed.checkpoint",
            "load load_state_dict async_save save save_state_dict "
            "FileSystemReader FileSystemWriter",
            kLoadsPickles},
    NameRow{"torch.distributed.checkpoint.state_dict_loader", kEveryName,
            kLoadsPickles},
    NameRow{"torch.distributed.checkpoint.state_dict_saver", kEveryName,
            kTouchesFiles},
    NameRow{"torch.distributed.checkpoint.format_utils", kEveryName,
            kLoadsPickles},
    NameRow{"torch.distributed.distributed_c10d",
            "_tensor_to_object _object_to_tensor broadcast_object_list "
            "all_gather_object recv_object_list scatter_object_list",
            kLoadsPickles},
    NameRow{"torch.library", kEveryName, kRegisters},
    NameRow{"torch.profiler", kEveryName, kTouchesFiles},
    NameRow{"torch.autograd.profiler", kEveryName, kTouchesFiles},
    NameRow{"torch.cuda.memory", kEveryName, kTouchesFiles},
    NameRow{"torch._appdirs", kEveryName, kTouchesFiles},
    NameRow{"torch._sources", kEveryName, kEvaluates},
    NameRow{"torch._lobpcg", kEveryName, kCalls},
};

}  // namespace

std::span<const NameRow> torch_names() {
  return kTorchNames;
}

}  // namespace postflight
